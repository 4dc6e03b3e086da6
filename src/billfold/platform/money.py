"""Money as integers: cents, units of $100 face, micro-dollars per $100.

The bank has one rounding rule, half up, and it is implemented only here.
"""

PRICE_PAR_MICROS = 100_000_000
"""The price of a bill at maturity: $100.000000 per $100 face."""

_MICROS_PER_CENT = 10_000
_HALF_A_CENT = _MICROS_PER_CENT // 2


def round_half_up(numerator: int, denominator: int) -> int:
    """Return numerator / denominator as an integer, ties towards plus infinity.

    -5/10 is 0 and 5/10 is 1: the rule is the same on both sides of zero, so that shifting a
    series by a whole number shifts its rounding with it. Raises ValueError when the
    denominator is not positive.
    """
    if denominator <= 0:
        raise ValueError(f"the denominator must be positive, not {denominator}")
    return (2 * numerator + denominator) // (2 * denominator)


def cents_for(units: int, price_micros: int) -> int:
    """Return the cents that `units` bills of $100 face cost at `price_micros` per $100.

    The one rounding of a trade: units times price first, then half up to the cent.
    """
    return (units * price_micros + _HALF_A_CENT) // _MICROS_PER_CENT


def format_usd(cents: int) -> str:
    """Return cents as people read them: "$1,000.00", "-$1.00"."""
    dollars, rest = divmod(abs(cents), 100)
    return f"{'-' if cents < 0 else ''}${dollars:,}.{rest:02d}"


def format_price(price_micros: int) -> str:
    """Return a price per $100 as people read it: "99.691250"."""
    dollars, micros = divmod(price_micros, 1_000_000)
    return f"{dollars}.{micros:06}"
