"""Named copies of a whole sandbox bank: its database, the folders beside it and its clock.

Owns how every process is made to close the bank, and how one bank takes the place of another. Never part of a
production bank.
"""
