"""Who owns what: names of customers, pockets, portals and the like, to their customer.

Owns look-ups by (kind, value) and their cache. Entries are written with the thing they name and
never change, so a cached one is never wrong. Never writes.
"""
