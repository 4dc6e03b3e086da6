"""Pockets as they are read: one row with what it holds, its day-end states, lists of them.

Owns every read of a Pocket's own state. Never writes (the engine does), never prices anything
and never decides.
"""
