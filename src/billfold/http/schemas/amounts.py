"""Money and prices on the wire."""

from __future__ import annotations

from decimal import Decimal
from typing import Literal

import msgspec

from billfold.platform.money import format_usd

_MICROS = 1_000_000


class Amount(msgspec.Struct, kw_only=True):
    """Cents of a currency, and the text people read."""

    value: int
    currency: Literal["USD"] = "USD"
    formatted: str = ""


def usd(cents: int) -> Amount:
    """An Amount of US dollars."""
    return Amount(value=cents, formatted=format_usd(cents))


def format_price(micros: int) -> str:
    """A price per $100 with its six decimals: "98.612361"."""
    return f"{micros // _MICROS}.{micros % _MICROS:06d}"


def format_appreciation(cents_per_second: Decimal) -> str:
    """Cents per second with its twelve decimals, never with an exponent: "0.033999678870"."""
    return f"{cents_per_second:.12f}"
