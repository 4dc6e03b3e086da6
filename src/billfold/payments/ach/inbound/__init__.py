"""Incoming ACH files: validated as a whole, then booked entry by entry."""
