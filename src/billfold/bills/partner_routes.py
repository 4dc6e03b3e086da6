"""Trading strategies, which the Partner API also calls Pocket Configurations."""

from __future__ import annotations

from billfold.bills.rules.strategies import StrategyUse
from billfold.bills.schemas import TradingStrategy
from billfold.bills.strategy_routes import Offset, strategies
from billfold.http.limits.rate_groups import STRATEGIES
from billfold.http.list_params import Limit
from billfold.http.operations import SIGNED, get, with_scope
from billfold.http.schemas.pages import OffsetList
from billfold.platform.paging import LIMIT_DEFAULT


@get("/api/v2/trading-strategies/", SIGNED, with_scope("pockets.read", STRATEGIES))
async def list_trading_strategies(
    enabled_for: StrategyUse | None = None, offset: Offset = 0, limit: Limit = LIMIT_DEFAULT
) -> OffsetList[TradingStrategy]:
    """List the strategies a Pocket can follow."""
    return strategies(enabled_for, offset, limit)


@get("/api/v2/pocket-configurations/")
async def list_pocket_configurations(
    enabled_for: StrategyUse | None = None, offset: Offset = 0, limit: Limit = LIMIT_DEFAULT
) -> OffsetList[TradingStrategy]:
    """List the configurations a Pocket can be opened with."""
    return strategies(enabled_for, offset, limit)
