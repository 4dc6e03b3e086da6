"""Taxes of customers: what they sold and redeemed in a calendar year, the forms that say so, and the file for the IRS.

Owns the figures of Forms 1099-INT and 1099-B. Never moves money, and never changes a basis: those of the ledger count.
"""
