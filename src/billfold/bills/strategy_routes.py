"""The list of trading strategies, and what it is asked with."""

from __future__ import annotations

from typing import Annotated

import msgspec

from billfold.bills.rules import strategies as strategies_module
from billfold.bills.rules.strategies import StrategyUse
from billfold.bills.schemas import TradingStrategy
from billfold.http.parameters import Query
from billfold.http.schemas.pages import OffsetList

Offset = Annotated[int, msgspec.Meta(ge=0), Query(description="How many to leave out at the front.")]


def strategies(use: StrategyUse | None, offset: int, limit: int) -> OffsetList[TradingStrategy]:
    """Return a part of the strategies that are for a use."""
    items = [
        TradingStrategy(
            id=strategy.id,
            description=strategy.description,
            maturity_weeks=strategy.maturity_weeks,
            enabled_for=[str(each) for each in strategy.enabled_for],
        )
        for strategy in strategies_module.list_strategies(use)
    ]
    return OffsetList(offset=offset, count=len(items), items=items[offset : offset + limit])
