"""Documents for customers: reports, statements, confirmations and tax forms.

Owns how documents are made from stored facts, stored and served. Never moves money.
"""
