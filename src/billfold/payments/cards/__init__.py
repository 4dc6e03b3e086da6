"""Debit cards of Pockets, virtual and physical, their orders and their statuses.

Owns cards as the bank knows them: id, last four digits, expiry, status. Never sees a card number, a CVV or a PIN: the
card processor keeps those, behind the port.
"""
