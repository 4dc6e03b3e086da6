"""Trading strategies, which the Partner API also calls Pocket Configurations."""

from typing import Annotated

import msgspec

from billfold.bills.rules.strategies import StrategyUse, list_strategies
from billfold.http.operations import SIGNED, get, with_scope
from billfold.http.parameters import Limit, Query
from billfold.http.schemas import OffsetList
from billfold.platform.database.paging import LIMIT_DEFAULT
from billfold.treasury.schemas import TradingStrategy

Offset = Annotated[int, msgspec.Meta(ge=0), Query(description="Number of rows to skip.")]


@get("/api/v2/pocket-configurations/", tag="strategies", name="list_pocket_configurations")
@get("/api/v2/trading-strategies/", SIGNED, with_scope("pockets.read", "trading-strategies"), tag="strategies")
async def list_trading_strategies(
    enabled_for: StrategyUse | None = None, offset: Offset = 0, limit: Limit = LIMIT_DEFAULT
) -> OffsetList[TradingStrategy]:
    """List trading strategies.

    Returns the strategies a Pocket can follow, and the configurations it can be opened with.
    """
    items = [
        TradingStrategy(
            id=strategy.id,
            description=strategy.description,
            maturity_weeks=strategy.maturity_weeks,
            enabled_for=[str(each) for each in strategy.enabled_for],
        )
        for strategy in list_strategies(enabled_for)
    ]
    return OffsetList(offset=offset, count=len(items), items=items[offset : offset + limit])
