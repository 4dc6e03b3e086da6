"""Teams: the members of a customer, their roles, and how they join and leave.

Owns invitations and the rules by which members (users and clients) are invited, changed
and deactivated; each change writes an audit entry and notifies the administrators. Never
knows how a user proves themselves, and never what a token is.
"""
