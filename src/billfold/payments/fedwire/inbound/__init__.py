"""Incoming Fedwire files: validated as a whole, then booked message by message."""
