"""Batches: up to 1,000 transfers, counterparties or Pockets in one request, all or none or each by itself.

Owns the list, its approval as a whole, and the result of each row. Never moves money and decides nothing that a single
one is not decided by: rows become the same transfer requests and commands.
"""
