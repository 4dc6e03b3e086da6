"""Trade confirmations: what Rule 10b-10 wants a customer to be sent of each purchase and sale.

Owns what they say. A maturity has none. Made when first requested, of what the trade's row says.
"""
