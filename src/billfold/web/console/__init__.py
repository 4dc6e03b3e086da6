"""The console: the bank in a browser, for a company's team, a partner, an operator.

Owns pages and what they draw. Never reads or decides by itself: a page is a client of the API of its visitor, in the
same process, so that authority, idempotency, limits and the audit log are those of the API.
"""
