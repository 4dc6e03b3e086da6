"""Trading strategies, which the Partner API also calls Pocket Configurations."""

from __future__ import annotations

from litestar import get

from billfold.interfaces.http.calls import Caller
from billfold.interfaces.http.shapes.pages import OffsetList
from billfold.interfaces.http.shapes.strategy import TradingStrategy
from billfold.interfaces.http.strategy_lists import Limit, Offset, Use, strategies


@get("/api/v2/trading-strategies/", operation_id="list_trading_strategies", tags=["strategies"])
async def list_trading_strategies(
    caller: Caller, enabled_for: Use = None, offset: Offset = 0, limit: Limit = None
) -> OffsetList[TradingStrategy]:
    """List the strategies a Pocket can follow."""
    del caller
    return strategies(enabled_for, offset, limit)


@get(
    "/api/v2/pocket-configurations/", operation_id="list_pocket_configurations", tags=["strategies"]
)
async def list_pocket_configurations(
    caller: Caller, enabled_for: Use = None, offset: Offset = 0, limit: Limit = None
) -> OffsetList[TradingStrategy]:
    """List the configurations a Pocket can be opened with."""
    del caller
    return strategies(enabled_for, offset, limit)


ROUTES = [list_trading_strategies, list_pocket_configurations]
