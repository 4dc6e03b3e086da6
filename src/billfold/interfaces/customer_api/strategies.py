"""Trading strategies."""

from __future__ import annotations

from litestar import get

from billfold.interfaces.customer_api.groups import STRATEGIES
from billfold.interfaces.customer_api.member import Member
from billfold.interfaces.http.marks import granted
from billfold.interfaces.http.shapes.pages import OffsetList
from billfold.interfaces.http.shapes.strategy import TradingStrategy
from billfold.interfaces.http.strategy_lists import Limit, Offset, Use, strategies


@get(
    "/api/v2/trading-strategies/",
    operation_id="list_trading_strategies",
    opt=granted("pockets.read", STRATEGIES),
    tags=["strategies"],
)
async def list_trading_strategies(
    member: Member, enabled_for: Use = None, offset: Offset = 0, limit: Limit = None
) -> OffsetList[TradingStrategy]:
    """List the strategies a Pocket can follow."""
    del member
    return strategies(enabled_for, offset, limit)


ROUTES = [list_trading_strategies]
