"""ACH: origination, receipt, returns, reversals, notifications of change and files of entries.

Owns the Nacha rules, the windows, the review and the tables of entries, returns and files. Never
decides whether a counterparty is verified.
"""
