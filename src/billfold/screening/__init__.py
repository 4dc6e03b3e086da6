"""Screening against sanctions lists: lists as OFAC publishes them, and how alike names are.

Owns the lists and their entries. Never changes an application, a counterparty or a customer: who calls does.
"""
