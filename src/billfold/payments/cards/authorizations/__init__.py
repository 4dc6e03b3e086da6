"""Card money: holds, clearings, refunds, chargebacks, and card limits.

Owns the holds and movements of card payments. Never settles with the processor: `payments/clearing` does.
"""
