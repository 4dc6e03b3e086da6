"""Wires: payments over Fedwire, outgoing and incoming, domestic and international.

Owns the cut-offs, the ISO 20022 messages and files, recalls and returns, and the table `wire`.
Never decides whether a counterparty is verified.
"""
