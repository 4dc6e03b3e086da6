"""On-us transfers: money or bills between two pockets of the bank.

Owns the transfer and its API. Never decides whether a payment needs an approval.
"""
