"""Reads of customers, for lists and single views.

Owns the reads of customers and the merging of their profiles. Never writes one: the engine does.
"""
