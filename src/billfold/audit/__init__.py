"""The audit log: who did what, when, from where, and whether it was allowed.

Owns the entries of every customer, their chain and its seals; entries are added in the transaction
of their cause. Never changes or removes one, never decides who may read them, and never keeps a
secret, card number or personal number.
"""
