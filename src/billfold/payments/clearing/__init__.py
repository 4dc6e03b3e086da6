"""Clearing: what each rail has brought and taken, and what of it is settled with the house.

Owns every read that explains the clearing accounts. Never settles anything: the house's day does.
"""
