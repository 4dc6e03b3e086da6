"""FIX 4.4 with dealers: a session per dealer, quotes, orders, and what dealers report.

Owns sequence numbers and messages. Never decides an order, and never books what contradicts its order.
"""
