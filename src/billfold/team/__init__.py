"""Teams: who works for a customer, as what, and how that comes and goes.

Owns invitations and the rules by which members, users and clients alike, are invited, changed
and deactivated; each change writes an audit entry and notifies the administrators. Never
knows how a user proves themselves, and never what a token is.
"""
