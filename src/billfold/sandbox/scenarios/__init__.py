"""Scenarios that play a story in a running sandbox: a bad week of a business, a month of cards, a payday.

Owns what happens in them, in which order. Everything goes through the Partner API, as a partner would do it; the market
alone is changed behind it.
"""
