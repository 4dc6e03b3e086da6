"""Applications of businesses and persons who want to become customers.

Owns their rows, missing fields, required documents and decisions; an approval creates
the customer through the engine. Never inspects a file and never checks an identity: ports do.
"""
