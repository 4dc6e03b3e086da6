"""Requests to an API and their results, for the engineers of a partner or a company.

Owns the rows of the request log, which are kept for days. Of the values of a request they hold its idempotency key, and
sealed why it was refused. It is not an audit log: under load, or when the database is unavailable, entries are dropped.
"""
