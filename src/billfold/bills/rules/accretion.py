"""Accretion: the discount of a bill accrues on a straight line from the bid of a day to par at maturity."""

from datetime import timedelta
from typing import NamedTuple

from billfold.platform.money import PRICE_PAR_MICROS, round_half_up

MICROSECONDS = 1_000_000
_SECONDS_PER_DAY = 86_400


class AccretionLine(NamedTuple):
    """The discount in micros where a line begins, and the microseconds from there to par."""

    discount: int
    span: int

    def price(self, remaining: int) -> int:
        """Return the price in micros as many microseconds before maturity."""
        # The price is rounded half up, not the discount: a tie goes towards par.
        return PRICE_PAR_MICROS + round_half_up(-self.discount * remaining, self.span)


def microseconds(span: timedelta) -> int:
    """Return a span in microseconds, exactly."""
    return (span.days * _SECONDS_PER_DAY + span.seconds) * MICROSECONDS + span.microseconds
