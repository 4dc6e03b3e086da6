"""Fedwire files: outbound and inbound messages, and their booking."""
