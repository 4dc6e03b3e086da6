"""Holds that callers place on a Pocket: money that nothing but the payment which names the hold can use.

Owns the hold, its expiry and its API. A hold sells no bills and moves nothing: it counts in what is available, like
the money of a collection that may still be returned.
"""
