"""Who may call: partners, their users, signing secrets, public keys and access tokens.

Owns how they are made, looked up and taken out of use, on the wall clock. Never decides what a
caller may do with money. Secrets are returned once, when they are made.
"""
