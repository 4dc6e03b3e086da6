"""Customers and partners as operators see them: lists, a search over the whole bank, payments, activity.

It only reads, but for the days that its worker counts. Every statement uses an index, however long the history; no
secret, card number or tax number is read.
"""
