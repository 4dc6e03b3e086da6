"""Amounts explained by formula, inputs, steps and rows: portfolios, earnings, fees and prices.

Owns explanations. Never computes an amount on its own: it calls the function that serves the amount, and an
explanation whose arithmetic gives another result is an error.
"""
