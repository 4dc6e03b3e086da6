"""Routing numbers: the Federal Reserve's directories, which an operator imports, and the look-up of a bank.

Owns the table `routing_directory`. It informs: whether a payment is sent is never decided here.
"""
