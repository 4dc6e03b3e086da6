"""Earnings of pockets over a period."""
