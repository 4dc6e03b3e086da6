"""Webhooks: subscriptions to event types, their deliveries and attempts.

Owns subscriptions with their secrets, the sequences of events, deliveries and attempts, and the
retry rules. HTTP requests are sent by workers, through a port.
"""
