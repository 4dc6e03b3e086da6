"""The balances of the customers of a list, and their last bookings."""

from collections.abc import Collection
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from billfold.bills.rules.market import Market
from billfold.platform.database.connection import Db
from billfold.platform.money import cents_for

_HELD = """
SELECT customer_id, asset, sum(credits - debits)::bigint FROM account
 WHERE customer_id = ANY($1::uuid[]) AND live AND kind IN ('cash', 'lot') GROUP BY 1, 2
"""
_BOOKED = "SELECT customer_id, booked_at FROM ledger_head WHERE customer_id = ANY($1::uuid[]) AND entry_no > 0"


class Balance(NamedTuple):
    """Cash and bills at the last tick, in cents, and the last booking; None before the first."""

    cents: int
    booked_at: datetime | None


async def read_balances(conn: Db, market: Market, owners: Collection[UUID], now: datetime) -> dict[UUID, Balance]:
    """Return the balance of each of some customers."""
    prices, cents = market.tick_prices(now), dict.fromkeys(owners, 0)
    for owner, asset, units in await conn.fetch(_HELD, list(owners)):
        cents[owner] += units if asset == "USD" else cents_for(units, prices[asset].mark_micros)
    booked = {row[0]: row[1] for row in await conn.fetch(_BOOKED, list(owners))}
    return {owner: Balance(value, booked.get(owner)) for owner, value in cents.items()}
