"""Yields of bills by 31 CFR 356 Appendix B. The investment rate needs a square root, and so Decimal."""

from datetime import date
from decimal import ROUND_HALF_UP, Context, Decimal, localcontext

from billfold.platform.money import PRICE_PAR_MICROS

SIMPLE_DAYS_MAX = 183
"""The investment rate is simple interest up to this number of days."""


# Forty digits keep the square root exact far beyond the three published decimals.
_CONTEXT = Context(prec=40, rounding=ROUND_HALF_UP)
_THOUSANDTH = Decimal("0.001")


def year_after(issue: date) -> date:
    """Return the same day of the next year; 29 February becomes 28 February."""
    try:
        return issue.replace(year=issue.year + 1)
    except ValueError:
        return issue.replace(year=issue.year + 1, day=28)


def investment_rate(price_micros: int, settles_on: date, maturity: date) -> Decimal:
    """Return the investment rate (coupon equivalent) in percent with three decimals.

    Simple interest up to 183 days, one half-yearly compounding above. The year has as many days
    as follow `settles_on` until the same date next year: 366 when a 29 February lies between.
    Zero when nothing is left to earn.
    """
    days = (maturity - settles_on).days
    if days <= 0:
        return Decimal("0.000")
    year_days = (year_after(settles_on) - settles_on).days
    price = Decimal(price_micros)
    with localcontext(_CONTEXT):
        if days <= SIMPLE_DAYS_MAX:
            rate = (PRICE_PAR_MICROS - price) * year_days / (price * days)
        else:
            rate = _compound_rate(price, Decimal(days) / year_days)
        return (rate * 100).quantize(_THOUSANDTH)


def _compound_rate(price: Decimal, b: Decimal) -> Decimal:
    """Return the positive root of a*i^2 + b*i + c = 0, the Treasury's formula above 183 days."""
    a, c = b / 2 - Decimal("0.25"), (price - PRICE_PAR_MICROS) / price
    return ((b * b - 4 * a * c).sqrt() - b) / (2 * a)


def price_from_investment_rate(rate_percent: Decimal, settles_on: date, maturity: date) -> int:
    """Return the price in micro-dollars per $100 at an investment rate, half up: the inverse of `investment_rate`."""
    days = (maturity - settles_on).days
    if days <= 0:
        return PRICE_PAR_MICROS
    with localcontext(_CONTEXT):
        b, rate = Decimal(days) / (year_after(settles_on) - settles_on).days, rate_percent / 100
        a = b / 2 - Decimal("0.25") if days > SIMPLE_DAYS_MAX else Decimal(0)
        return int((PRICE_PAR_MICROS / (1 + b * rate + a * rate * rate)).quantize(Decimal(1)))
