"""Reports that are requested, made by workers, and downloaded for 90 days.

Owns requests, the formats of their reports, and which renderer makes what. Never reads a clock while it makes one: a
report shows the instant at which it was requested.
"""
