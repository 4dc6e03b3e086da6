"""Events: what subscribers receive.

Owns the event types, their payloads and their visibility. Never decides whether something
happened: the flow in which it happens writes the event. Reads are in `log`.
"""
