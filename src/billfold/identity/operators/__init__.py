"""Who acts for the bank itself, what they may do, and what the bank's own audit log keeps of it.

An operator is a member of the bank's own team, or whoever runs the command line.
"""
