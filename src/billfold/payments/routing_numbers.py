"""Routing numbers of the ABA: eight digits of a bank, and the check digit."""

from functools import lru_cache

from stdnum.us import rtn


def routing_number_of(bank: str) -> str:
    """Return the routing number of a bank: its eight-digit identification and the check digit."""
    return bank + str(rtn.calc_check_digit(bank))


@lru_cache(maxsize=50_000)
def is_routing_number(number: str) -> bool:
    """Tell whether the check digit is right. Files name few banks many times."""
    return bool(rtn.is_valid(number))
