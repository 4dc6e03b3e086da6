"""The documentation site at `/docs`: pages rendered from Markdown, written by hand or made from the code.

It answers on every host of the APIs and of the authorization server, offline. It never reads the database, sets no
cookie and knows no visitor.
"""
