"""The daily root: what the bank owes every customer at the close of a day, signed as one hash.

Owns the trees under it and the proofs out of them. Never publishes a day on which bills are owed that nobody holds.
"""
