"""Documents for customers: reports, statements, confirmations and tax forms.

Owns how documents are made of stored facts, kept and handed out. Never moves money.
"""
