"""Clearing: what moved by each rail, and what of it is settled.

Owns the queries that explain the clearing accounts, and the day end of the bank, which settles them.
"""
