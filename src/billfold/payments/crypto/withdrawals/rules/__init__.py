"""Withdrawals, pure: booking and return, transactions and fees, what nodes report."""
