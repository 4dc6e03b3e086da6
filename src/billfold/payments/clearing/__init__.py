"""Clearing: the movements of each rail, and the settled part of them.

Owns the queries that explain the clearing accounts, and the day end of the bank, which settles them.
"""
