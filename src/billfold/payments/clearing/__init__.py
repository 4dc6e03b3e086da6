"""Clearing: what moved by each rail, and what of it is settled.

Owns the queries that explain the clearing accounts. A rail whose payments are not transactions of its own type has
a module `movements` with its query. Never settles: the day end of the bank does.
"""
