"""The entities of the authorization server: clients, requests, grants, codes, tokens, proofs, keys.

Owns the access tokens of the Customer API, on the wall clock, and the rules for issuing
them. Never decides what their holder may do with money, and never authenticates users.
"""
