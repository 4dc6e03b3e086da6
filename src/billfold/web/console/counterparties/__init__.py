"""Counterparties: who can be paid, how far the proof of their accounts is; added, renamed and removed."""
