"""Sanctions screening: lists as OFAC publishes them, and the similarity of names.

Owns the lists and their entries. Never changes an application, a counterparty or a customer: the callers do.
"""
