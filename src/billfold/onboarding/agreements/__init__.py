"""Agreements that a company accepts when it opens an account.

Owns the texts in force and their version. Acceptances are recorded with the applications.
"""
