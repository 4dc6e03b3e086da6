"""Trades: the list, its file, one of them with its confirmation."""
