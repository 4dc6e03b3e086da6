"""Amounts explained by formula, inputs, steps and rows: portfolios, earnings, fees and prices.

Owns explanations. Never computes an amount in its own way: the function that serves the amount is called, and an
explanation whose arithmetic does not come to the same is an error.
"""
