"""The money of cards: holds, clearings, refunds, chargebacks, and the limits of a card.

Owns what a payment by card reserves and moves. Never settles with the processor: `payments/clearing` does.
"""
