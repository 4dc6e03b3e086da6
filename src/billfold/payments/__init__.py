"""Payments: one folder per rail, and what all rails share."""
