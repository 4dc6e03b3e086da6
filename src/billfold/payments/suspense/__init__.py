"""Suspense: payments for which no owner was found, until they are returned or find one.

Owns their shape and every read of them. Never moves one: that is a flow.
"""
