"""Scenarios that play a story in a running sandbox: a bad week of a business, a month of cards, a payday.

Owns the steps of the stories and their order. Everything goes through the Partner API, like a real partner; only the
market is changed directly.
"""
