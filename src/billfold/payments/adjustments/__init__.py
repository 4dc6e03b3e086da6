"""Adjustments: goodwill credits, manual debits and credits, corrections."""
