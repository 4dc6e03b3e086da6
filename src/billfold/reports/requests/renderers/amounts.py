"""Cents and prices as decimals of a file."""

from decimal import Decimal


def dollars(cents: int) -> Decimal:
    """Return cents as dollars with two decimals."""
    return Decimal(cents).scaleb(-2)


def per_hundred(micros: int) -> Decimal:
    """Return a price in micros as dollars per $100 of face value with six decimals."""
    return Decimal(micros).scaleb(-6)
