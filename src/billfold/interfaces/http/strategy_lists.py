"""The list of trading strategies, and what it is asked with."""

from __future__ import annotations

from typing import Annotated

from litestar.params import QueryParameter

from billfold.domain import tbills
from billfold.interfaces.http.shapes.pages import OffsetList
from billfold.interfaces.http.shapes.strategy import TradingStrategy
from billfold.kit.errors import InvalidInput
from billfold.kit.paging import parse_limit

Use = Annotated[
    str | None, QueryParameter(name="enabled_for", description="DEPOSIT or REINVESTMENT.")
]
Offset = Annotated[
    int, QueryParameter(name="offset", ge=0, description="How many to leave out at the front.")
]
Limit = Annotated[str | None, QueryParameter(name="limit", description="1 to 100, default 30.")]


def strategies(
    enabled_for: str | None, offset: int, limit: str | None
) -> OffsetList[TradingStrategy]:
    """Return a part of the strategies that are for a use. Raises InvalidInput."""
    wanted = parse_limit(limit)
    if enabled_for is not None and enabled_for not in set(tbills.StrategyUse):
        raise InvalidInput.at("query", "enabled_for", msg="must be DEPOSIT or REINVESTMENT")
    use = tbills.StrategyUse(enabled_for) if enabled_for else None
    items = [
        TradingStrategy(
            id=strategy.id,
            description=strategy.description,
            maturity_weeks=strategy.maturity_weeks,
            enabled_for=[str(each) for each in strategy.enabled_for],
        )
        for strategy in tbills.list_strategies(use)
    ]
    return OffsetList(offset=offset, count=len(items), items=items[offset : offset + wanted])
