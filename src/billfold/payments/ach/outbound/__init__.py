"""Outgoing ACH files: windows, composition, micro-deposits."""
