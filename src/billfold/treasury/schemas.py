"""A trading strategy."""

from typing import Literal

import msgspec


class TradingStrategy(msgspec.Struct, kw_only=True):
    """Buy the newest bill of one term and hold it."""

    id: str
    description: str
    maturity_weeks: int
    enabled_for: list[str]
    object_type: Literal["TradingStrategy"] = "TradingStrategy"
