"""The authorization server's nouns: clients, requests, grants, codes, tokens, proofs, keys.

Owns what a token of the Customer API stands for, on the wall clock, and the rules by which one
comes about. Never decides what its holder may do with money, and never who a user is.
"""
