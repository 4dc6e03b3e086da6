"""Events: what subscribers receive.

Owns the kinds of events, what each says and who may see it. Never decides whether something
happened: the flow in which it happens writes the event. Reads are in `log`.
"""
