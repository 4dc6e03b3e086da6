"""The team of a company that applies: invited at once when it is approved, before that with its approval.

Owns who waits to be invited. Never invites by itself: `access/team` does.
"""
