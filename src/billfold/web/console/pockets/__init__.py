"""Pockets, what they hold, and how to pay into them."""
