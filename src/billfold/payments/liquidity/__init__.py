"""The bank's money at the Federal Reserve by hour, and which payments wait for it.

Owns the forecast of the reserve and the order in which due wires leave. It never books, and never rejects a payment.
"""
