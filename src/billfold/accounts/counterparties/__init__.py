"""Payees of customers, the verification of their accounts, and the conditions for payments to them.

Owns every read of a counterparty, the checks of its numbers, and `may_be_paid`. Never links,
verifies or unlinks one: flows do.
"""
