"""Batches in the console: tables of payments and of payees, and what becomes of them."""
