"""Stablecoins on public chains: deposits to addresses of portals, withdrawals to wallets.

Owns the chains' configuration, their watcher and the records of movements. Never holds a private key of a deposit
address: the addresses are derived from a public key only.
"""
