"""Payees of customers, the verification of their accounts, and when money may move to them.

Owns every read of a counterparty, the checks of its numbers, and `may_be_paid`. Never links,
verifies or unlinks one: that is a flow's work.
"""
