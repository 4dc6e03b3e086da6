"""Users: who may sign in, with which credentials, and their memberships.

Owns users, memberships with their roles, credentials, sessions and the e-mails written to them,
all on the wall clock. Never decides about money, and never knows a page or a token of an
application. Secrets are kept as hashes, or sealed where they must be read again.
"""
