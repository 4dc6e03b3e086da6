"""The card processor's authorization host: speaks ISO 8583 with a card network, and HTTP with the bank.

Owns the mapping of card numbers, PIN, CVV and expiry checks, and its own decisions while the bank was unavailable.
It never decides about money while the bank answers, and sends card numbers only to the network they came from.
"""
