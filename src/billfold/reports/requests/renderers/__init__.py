"""What writes each type of report in each of its formats.

Owns the table of renderers. Never decides who may have a report, and keeps nothing of what it writes in memory that
grows with the customer.
"""
