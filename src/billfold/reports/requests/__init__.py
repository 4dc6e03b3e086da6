"""Reports: requested by customers, made by workers, and available for 90 days.

Owns requests, the formats of reports, and their renderers. Never reads a clock while rendering: a
report shows the state at the instant of its request.
"""
