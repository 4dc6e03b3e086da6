"""Transactions: the list with its filters, its file, one of them."""
