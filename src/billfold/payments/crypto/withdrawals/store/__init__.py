"""Queries of withdrawals, and of the transactions that pay them."""
