"""Requests to an API and their results, for the engineers of a partner or a company.

Owns the rows of the request log, which are kept for days. Never holds a value of a request, and is not an audit log:
under load, or when the database is unavailable, entries are dropped.
"""
