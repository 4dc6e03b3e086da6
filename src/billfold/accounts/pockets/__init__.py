"""Reads of Pockets: one row with its holdings, its day-end states, and lists.

Owns every read of a Pocket's own state. Never writes (the engine does), never prices anything
and never decides.
"""
