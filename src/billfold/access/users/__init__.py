"""People: who may sign in, how they prove it, and whose members they are.

Owns persons, memberships with their roles, credentials, sessions and the letters written to them,
all on the wall clock. Never decides about money, and never knows a page or a token of an
application. Secrets are kept as hashes, or sealed where they must be read again.
"""
