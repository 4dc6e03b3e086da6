"""Customers as operators see them: lists, a search over the whole bank, and where a payment is.

It only reads. Every statement uses an index, however long the history; no secret, card number or tax number is read.
"""
