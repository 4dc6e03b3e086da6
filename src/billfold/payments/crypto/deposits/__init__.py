"""Deposits of stablecoins: the watcher of chains, and crediting, carrying, holding or reversing deposits.

Owns `crypto_deposit`, the tables `chain_*` and the addresses of portals. Never holds a spending key.
"""
