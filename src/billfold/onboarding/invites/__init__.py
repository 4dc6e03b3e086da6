"""Invites: people without an account who fill in, review or submit someone else's application.

Owns the invites, their links and sessions, and the rights of each kind of invited person. Never checks the
content of an application: the functions that the APIs call do.
"""
