"""Deposits of stablecoins: the watcher of chains, and what is credited, carried, held or taken back.

Owns `crypto_deposit`, the tables `chain_*` and the addresses of portals. Never holds a key that spends.
"""
