"""The words of the ledger: kinds of accounts, journal entries, transactions and trades.

Owns no table. Never decides anything.
"""
