"""Portals as they are read.

Owns every read of a portal. Never opens or closes one: that is a flow's decision.
"""
