"""Which requests were sent to an API and what became of them: for the engineers of a partner or a company.

Owns the rows of the request log, which are kept for days. Never holds a value of a request, and is no audit log: under
load, or when the database is away, entries are dropped.
"""
