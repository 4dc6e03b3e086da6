"""The frame of the console: the visitor as a member of a company, a partner or the bank, and the API they may use.

A page never reads or decides by itself: it calls operations of the API of its visitor, so that authority, idempotency,
limits and the audit log are those of the API.
"""
