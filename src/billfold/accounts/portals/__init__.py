"""Reads of portals.

Owns every read of a portal. Never opens or closes one: flows do.
"""
