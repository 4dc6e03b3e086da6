"""Agreements that customers accepted.

Owns the acceptances and the rule of who can make payments without one. Never the texts: they are in `onboarding`.
"""
