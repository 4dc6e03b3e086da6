"""Monthly statements of Pockets, and the list of every statement that a customer was given.

Owns their rows and what they say. Made once a month is over; a corrected one is another version. It never moves money.
"""
