"""Withdrawals: USDC that customers send from the bank's wallet to wallets of their counterparties.

Owns the withdrawal, the transactions of the wallet and the port of their signer. Never holds a private key, and
never returns money while a transaction that pays it may still be confirmed.
"""
