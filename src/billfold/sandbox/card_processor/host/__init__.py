"""The card processor's authorisation host: speaks ISO 8583 with a card network, and HTTP with the bank.

Owns who a card number belongs to, PIN, CVV and expiry checks, and what it decided or promised while the bank was away.
It never decides about money while the bank answers, and no card number leaves it but to the network that sent it.
"""
