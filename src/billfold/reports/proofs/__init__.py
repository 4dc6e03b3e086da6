"""Proofs that the bank gives away: of each document, that it is as the bank made it, and of each day, what it owed.

Owns the key that signs them. Never needs the ledger to check one: a proof holds all that it is checked with.
"""
