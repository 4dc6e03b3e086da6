"""Invites: people without an account who fill in, review or submit an application of somebody else.

Owns the invites, their links and sessions, and what each kind of invited person may do. Never checks what an
application says: that is done by the functions that the APIs call too.
"""
