"""Users: who may sign in, with which credentials, and their memberships.

Owns users, memberships with their roles, credentials, sessions and the e-mails sent to them,
all on the wall clock. Never decides about money, and knows no pages and no application
tokens. Secrets are kept as hashes, or sealed where they must be read again.
"""
