"""Named copies of a whole sandbox bank: its database, files and clock.

Owns the way every process is made to close the bank, and the replacement of one bank by another. Never part of a
production bank.
"""
