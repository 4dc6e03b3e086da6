"""Monthly statements of Pockets, and the list of every statement issued to a customer.

Owns their rows and contents. Made once a month is over; a corrected one is a new version. It never moves money.
"""
