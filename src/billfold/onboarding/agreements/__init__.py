"""Agreements: what a company agrees to when it opens an account.

Owns the texts in force and their version. Who accepted them is recorded with their application.
"""
