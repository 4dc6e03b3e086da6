"""Fedwire ISO 20022 messages: written as the service takes them, read as it sends them.

Owns where each thing stands in the XML. Never decides what becomes of a wire: it takes all
messages of a file or none.
"""
