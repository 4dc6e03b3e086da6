"""Cash back: a share of a month's card purchases, credited to a partner's customers.

Owns the rules of partners and the cash back given. Moves money only as a credit of `adjustments`.
"""
