"""A card processor that exists only in the sandbox, in a process of its own.

Owns card numbers, CVVs and PINs: sealed in its own file, under its own key. No other process holds one in plain text.
"""
