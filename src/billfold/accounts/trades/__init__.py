"""Reads of trades.

Owns every read of trades. Never makes one: flows do, and the engine writes them.
"""
