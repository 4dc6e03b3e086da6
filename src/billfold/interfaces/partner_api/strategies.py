"""Trading strategies, which the Partner API also calls Pocket Configurations."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from litestar import get
from litestar.params import QueryParameter

from billfold.domain import tbills
from billfold.interfaces.http.calls import Caller
from billfold.interfaces.http.shapes.pages import OffsetList
from billfold.kit.errors import InvalidInput
from billfold.kit.paging import parse_limit

Use = Annotated[
    str | None, QueryParameter(name="enabled_for", description="DEPOSIT or REINVESTMENT.")
]
Offset = Annotated[
    int, QueryParameter(name="offset", ge=0, description="How many to leave out at the front.")
]
Limit = Annotated[str | None, QueryParameter(name="limit", description="1 to 100, default 30.")]


class TradingStrategy(msgspec.Struct, kw_only=True):
    """Buy the newest bill of one term and hold it."""

    id: str
    description: str
    maturity_weeks: int
    enabled_for: list[str]
    object_type: Literal["TradingStrategy"] = "TradingStrategy"


@get("/api/v2/trading-strategies/", operation_id="list_trading_strategies", tags=["strategies"])
async def list_trading_strategies(
    caller: Caller, enabled_for: Use = None, offset: Offset = 0, limit: Limit = None
) -> OffsetList[TradingStrategy]:
    """List the strategies a Pocket can follow."""
    del caller
    return _strategies(enabled_for, offset, parse_limit(limit))


@get(
    "/api/v2/pocket-configurations/", operation_id="list_pocket_configurations", tags=["strategies"]
)
async def list_pocket_configurations(
    caller: Caller, enabled_for: Use = None, offset: Offset = 0, limit: Limit = None
) -> OffsetList[TradingStrategy]:
    """List the configurations a Pocket can be opened with."""
    del caller
    return _strategies(enabled_for, offset, parse_limit(limit))


def _strategies(enabled_for: str | None, offset: int, limit: int) -> OffsetList[TradingStrategy]:
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
    return OffsetList(offset=offset, count=len(items), items=items[offset : offset + limit])


ROUTES = [list_trading_strategies, list_pocket_configurations]
