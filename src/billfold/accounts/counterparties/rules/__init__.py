"""Counterparty decisions, pure: identifiers, verification, changes."""
