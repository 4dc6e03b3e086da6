"""A card processor that exists only in the sandbox, in a separate process.

Owns card numbers, CVVs and PINs: sealed in its own file, with its own key. No other process holds one in plain text.
"""
