"""Callers of the Partner API: partners, their users, signing secrets, public keys and access tokens.

Owns creation, look-up and revocation, on the wall clock. Never decides what a
caller may do with money. Secrets are returned once, when they are made.
"""
