"""Whom customers pay, how it is shown that an account is theirs, and the rule of the money.

Owns every read of a counterparty, the checks of its numbers, and `may_be_paid`. Never links,
verifies or unlinks one: that is a flow's work.
"""
