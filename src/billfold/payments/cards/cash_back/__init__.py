"""Cash back: what a partner's customers get back of a month's purchases by card.

Owns the rules of partners and what was given by them. Never moves money but as a credit of `adjustments`.
"""
