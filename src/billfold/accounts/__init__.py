"""Accounts: customers, pockets, portals, counterparties, transactions, and the directory of names."""
