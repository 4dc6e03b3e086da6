"""Webhooks: who subscribed to which kinds of events, and what was delivered to whom.

Owns subscriptions with their secrets, the sequences of events, deliveries and attempts, and the
rules of trying again. Never calls anybody: workers do, through a port.
"""
