"""Wires: money over Fedwire, both ways, at home and abroad.

Owns when a wire leaves, what its messages say, and the table `wire` with all that hangs on it.
Never books one: that is a flow. This facade is pure; what asks the database is in `reads`.
"""
