"""Debit cards of Pockets, virtual and physical, their orders and their statuses.

Owns cards as the bank knows them: id, last four digits, expiry, status. Never sees a card number, a CVV or a PIN: those
stay with the card processor, behind the port.
"""
