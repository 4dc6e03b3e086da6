"""Customers' taxes: sales and redemptions of a calendar year, the tax forms, and the file for the IRS.

Owns the figures of Forms 1099-INT and 1099-B. Never moves money, and never changes a basis: the ledger's is used.
"""
