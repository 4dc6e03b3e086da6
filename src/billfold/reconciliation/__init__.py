"""Reconciliation: statements of the reserve account, the custodian and the dealers against the ledger.

Owns the days that are reconciled and the breaks. Never writes anything off: two people close a break.
"""
