"""Balances and entries of an account in a period, read once for every format and statement."""
