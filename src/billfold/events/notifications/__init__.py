"""Notifications to a customer's users: types, audiences, and read status.

Owns the types with the platform's audiences, the audiences teams choose, and every notification.
Never decides what happened: the code that causes a notification writes it in the same transaction.
"""
