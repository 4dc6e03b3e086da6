"""Disputes of card payments by their holders, from the opening to the network's decision.

Owns disputes and the credits that the bank gives provisionally. Chargebacks and refunds are booked by `settlement`.
"""
