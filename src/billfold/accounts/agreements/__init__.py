"""Agreements accepted by customers.

Owns the acceptances and the rule that payments require one. Never the texts: they are in `onboarding`.
"""
