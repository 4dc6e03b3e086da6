"""Proofs issued by the bank: that a document is unchanged, and what the bank owed on each day.

Owns the keys that sign them. Never needs the ledger to check a proof, which is self-contained.
"""
