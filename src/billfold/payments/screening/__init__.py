"""Screening of payments and payees, behind a port."""
