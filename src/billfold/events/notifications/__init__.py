"""Notifications: what a customer's users are told, who hears of what, and what they have read.

Owns the types with the platform's audiences, the audiences teams choose, and every notification.
Never decides what happened: whoever causes something tells of it, in the same transaction.
"""
