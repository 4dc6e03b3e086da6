"""Fedwire ISO 20022 messages: types, XML layouts, files read and written.

Owns the XML layouts. Never decides about a wire; a file is valid as a whole or not at all.
"""
