"""Two simulated dealers: a process of their own that speaks FIX 4.4 with the bank.

They know only what the bank sends them, and keep their own books. Nothing here runs in a production bank.
"""
