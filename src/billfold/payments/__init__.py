"""Payments: one folder per rail, and the parts shared by all rails."""
