"""The documentation site at `/docs`: pages rendered from Markdown, written by hand or generated from the code.

Served on every host of the APIs and of the authorization server, offline. It never reads the database, sets no
cookie and does not identify visitors.
"""
