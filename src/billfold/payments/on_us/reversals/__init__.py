"""Reversals of on-us transfers: by right within one customer, else asked of the customer that was paid.

Owns the requests. Never moves money itself: a reversal is another on-us transfer, which names the one that it reverses.
"""
