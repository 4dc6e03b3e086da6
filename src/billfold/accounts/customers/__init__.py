"""Customers as they are listed and shown.

Owns the reads of customers and the merging of their profile. Never writes one: the engine does.
"""
