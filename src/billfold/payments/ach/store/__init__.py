"""Queries of ACH entries and files."""
