"""Fedwire ISO 20022 messages: types, XML layouts, reading and writing files.

Owns the XML layouts. Never decides about a wire; a file is valid or refused as a whole.
"""
