"""The ledger: books, commands, postings, the chain, and the engine that writes them.

Owns no table. Makes no decisions.
"""
