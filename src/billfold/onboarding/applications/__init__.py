"""Applications of businesses and persons who want to become customers.

Owns their rows, what is missing in them, which documents follow from them and how they are decided; an approval creates
the customer through the engine. Never inspects a file and never checks an identity: ports do.
"""
