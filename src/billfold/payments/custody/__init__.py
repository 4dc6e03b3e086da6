"""Custody: bills that come from a custodian elsewhere, and go to one.

Owns their shape and every read of them. Never moves a bill: that is a flow.
"""
