"""Answers from banks, brokers and processors, received as new commands."""
