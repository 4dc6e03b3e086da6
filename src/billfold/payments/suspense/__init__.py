"""Suspense: payments that cannot be booked to a customer, held until they are returned or assigned.

Owns the table `suspense_item` and its commands. Never writes messages of a rail.
"""
