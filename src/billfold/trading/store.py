"""Queries of the trading desk: exposure, orders, executions, and the result of a day."""

from collections.abc import Collection, Sequence
from datetime import date
from typing import Any, NamedTuple
from uuid import UUID

from billfold.platform.database.connection import Connection, Db
from billfold.platform.database.rows import References, Table
from billfold.trading.settlement.store import load_instructions
from billfold.trading.settlement.types import instruction_id_of
from billfold.trading.types import (
    LIVE,
    DealerOrder,
    Execution,
    Quote,
    ReferencedExecution,
    ReferencedOrder,
    TradingDesk,
)

_desks, _orders = Table(TradingDesk), Table(DealerOrder)
_quotes, _executions = Table(Quote), Table(Execution)
find_desk = _desks.find
load_desks = _desks.load_references
get_order = _orders.get
find_order = _orders.find
get_execution = _executions.get
find_execution = _executions.find

LIVE_IN_SQL = f"({', '.join(f'{each.value!r}' for each in sorted(LIVE))})"
"""The states of live orders, for an IN."""
# $1 the bank, $2 the first settlement date of trades that may not be met. An execution is booked ten days before it
# settles at the earliest.
_EXPOSURE = f"""
WITH traded AS MATERIALIZED (
  SELECT cusip, settles_on, sum(CASE activity WHEN 'BUY' THEN units ELSE -units END) AS customers
    FROM trade WHERE settles_on >= $2 AND activity IN ('BUY', 'SELL') GROUP BY cusip, settles_on
), filled AS MATERIALIZED (
  SELECT cusip, settles_on, units FROM execution_movement
   WHERE customer_id = $1 AND settles_on >= $2 AND business_date >= $2::date - 10
), moved AS (
  SELECT cusip, settles_on, customers, 0 AS met, 0 AS dealers FROM traded
  UNION ALL
  -- What a dealer was assumed to have filled, before the bank had dealers, is not exposed.
  SELECT cusip, settles_on, CASE WHEN from_inventory THEN 0 ELSE -net END,
         CASE WHEN from_inventory THEN net ELSE 0 END, 0
    FROM (SELECT cusip, settles_on, from_inventory, CASE side WHEN 'BUY' THEN units ELSE -units END AS net
            FROM settlement WHERE settles_on >= $2 AND side IN ('BUY', 'SELL')) s
  UNION ALL
  SELECT cusip, settles_on, 0, 0, units FROM filled
), dated AS (
  SELECT cusip, settles_on, sum(customers)::bigint AS customers, sum(met)::bigint AS met,
         sum(dealers)::bigint AS dealers
    FROM moved GROUP BY cusip, settles_on
), held AS MATERIALIZED (
  SELECT asset AS cusip, (credits - debits)::bigint AS units FROM account
   WHERE customer_id = $1 AND kind = 'inventory' AND asset <> 'USD' AND credits <> debits
), ordered AS MATERIALIZED (
  SELECT cusip, coalesce(sum(open * sign) FILTER (WHERE status <> 'UNKNOWN'), 0)::bigint AS live,
         coalesce(sum(open) FILTER (WHERE status = 'UNKNOWN' AND sign > 0), 0)::bigint AS unknown_buys,
         coalesce(sum(open) FILTER (WHERE status = 'UNKNOWN' AND sign < 0), 0)::bigint AS unknown_sells
    FROM (SELECT cusip, status, units - filled_units AS open, CASE side WHEN 'BUY' THEN 1 ELSE -1 END AS sign
            FROM dealer_order WHERE customer_id = $1 AND status IN {LIVE_IN_SQL}) o GROUP BY cusip
)
SELECT cusip, d.settles_on, coalesce(d.customers, 0) AS customers, coalesce(d.met, 0) AS met,
       coalesce(d.dealers, 0) AS dealers, coalesce(h.units, 0) AS inventory, coalesce(o.live, 0) AS live,
       coalesce(o.unknown_buys, 0) AS unknown_buys, coalesce(o.unknown_sells, 0) AS unknown_sells
  FROM dated d FULL JOIN held h USING (cusip) FULL JOIN ordered o USING (cusip)
 ORDER BY cusip, d.settles_on
"""


# Without them a million trades that are newer than the statistics are sorted on disk.
_BY_INDEX = "SET LOCAL enable_seqscan = off; SET LOCAL enable_sort = off; SET LOCAL jit = off"


class DatedExposure(NamedTuple):
    """One settlement date of a bill: units that customers bought net, and units that dealers sold to the bank net."""

    settles_on: date
    customers: int
    dealers: int

    @property
    def units(self) -> int:
        """Units that are not covered for this date, negative if more than needed."""
        return self.customers - self.dealers


class Exposure(NamedTuple):
    """A bill: the dates that are not settled, the bank's inventory, and the orders that cover it.

    `unmet` are units that customers bought net and the bank has not met from its inventory. `carried` are the bank's
    own units from earlier dates.
    """

    cusip: str
    dates: list[DatedExposure]
    unmet: int
    inventory: int
    carried: int
    live: int
    unknown_buys: int
    unknown_sells: int

    @property
    def units(self) -> int:
        """Units that customers hold and no dealer has sold to the bank, negative for the bank's own."""
        return self.unmet - self.inventory


async def list_exposure(conn: Connection, bank_id: UUID, since: date) -> list[Exposure]:
    """Return the exposure by CUSIP, of trades that settle `since` a date. Runs in the caller's transaction.

    Trades are found by the block index on their settlement date, even before the table's statistics know the day.
    """
    await conn.execute(_BY_INDEX)
    by_cusip: dict[str, list[Any]] = {}
    for row in await conn.fetch(_EXPOSURE, bank_id, since):
        by_cusip.setdefault(row["cusip"], []).append(row)
    return [_exposure(cusip, rows) for cusip, rows in by_cusip.items()]


def _exposure(cusip: str, rows: list[Any]) -> Exposure:
    first = rows[0]
    dates = [
        DatedExposure(row["settles_on"], row["customers"], row["dealers"])
        for row in rows
        if row["settles_on"] is not None
    ]
    return Exposure(
        cusip,
        dates,
        unmet=sum(row["customers"] - row["met"] for row in rows),
        inventory=first["inventory"],
        carried=first["inventory"] - sum(row["dealers"] - row["met"] for row in rows),
        live=first["live"],
        unknown_buys=first["unknown_buys"],
        unknown_sells=first["unknown_sells"],
    )


_ORDERS = f"{_orders.select} WHERE customer_id = $1"
_LIST_LIVE = f"{_ORDERS} AND status IN {LIVE_IN_SQL} ORDER BY decided_at, order_id"
_LIST_ENDED = f"{_ORDERS} AND status NOT IN {LIVE_IN_SQL} ORDER BY decided_at DESC, order_id LIMIT $2"
_QUOTES = f"{_quotes.select} WHERE customer_id = ANY($1::uuid[]) AND order_id = ANY($2::uuid[]) ORDER BY quoted_at"
_REFERENCED = f"""
SELECT {_executions.columns("e")},
       EXISTS (SELECT 1 FROM execution c WHERE c.customer_id = e.customer_id AND c.corrects = e.execution_id)
         AS is_replaced
  FROM execution e"""
_ANY_EXECUTIONS = f"{_REFERENCED} WHERE customer_id = ANY($1::uuid[]) AND execution_id = ANY($2::uuid[])"
_NEWEST = f"""
{_REFERENCED} WHERE customer_id = $1 ORDER BY business_date DESC, recorded_at DESC, execution_id LIMIT $2
"""


async def list_live_orders(conn: Db, bank_id: UUID) -> list[DealerOrder]:
    """Return the orders that have not ended, oldest first."""
    return await _orders.all(conn, _LIST_LIVE, bank_id)


async def list_ended_orders(conn: Db, bank_id: UUID, limit: int) -> list[DealerOrder]:
    """Return the newest orders that have ended."""
    return await _orders.all(conn, _LIST_ENDED, bank_id, limit)


async def list_executions(conn: Db, bank_id: UUID, limit: int) -> list[ReferencedExecution]:
    """Return the newest executions."""
    return [_referenced(row) for row in await conn.fetch(_NEWEST, bank_id, limit)]


_NEWEST_OF = f"""
WITH RECURSIVE line AS (
  SELECT {_executions.columns()} FROM execution WHERE customer_id = $1 AND execution_id = $2
  UNION ALL
  SELECT {_executions.columns("e")} FROM execution e
    JOIN line l ON e.customer_id = l.customer_id AND e.corrects = l.execution_id WHERE e.customer_id = $1
)
SELECT {_executions.columns("l")} FROM line l
 WHERE NOT EXISTS (SELECT 1 FROM line c WHERE c.corrects = l.execution_id)
"""


async def find_newest_execution(conn: Db, bank_id: UUID, execution_id: UUID) -> Execution | None:
    """Return an execution, or the row that has replaced it last."""
    return await _executions.first(conn, _NEWEST_OF, bank_id, execution_id)


async def list_quotes(conn: Db, bank_id: UUID, order_ids: Collection[UUID]) -> dict[UUID, list[Quote]]:
    """Return the quotes of these orders, by order."""
    found: dict[UUID, list[Quote]] = {each: [] for each in order_ids}
    for quote in await _quotes.all(conn, _QUOTES, [bank_id], list(order_ids)):
        found[quote.order_id].append(quote)
    return found


async def load_orders(
    conn: Connection, customer_ids: Sequence[object], ids: Sequence[object]
) -> list[tuple[UUID, UUID, ReferencedOrder]]:
    """Return the orders that commands reference, with their quotes."""
    orders = await _orders.load_references(conn, customer_ids, ids)
    quotes = await _quotes.all(conn, _QUOTES, customer_ids, ids) if orders else []
    return [
        (bank_id, order_id, ReferencedOrder(row, tuple(each for each in quotes if each.order_id == order_id)))
        for bank_id, order_id, row in orders
    ]


async def load_executions(conn: Connection, customer_ids: Sequence[object], ids: Sequence[object]) -> References:
    """Return the executions that commands reference, and their instructions to the custodian."""
    rows = await conn.fetch(_ANY_EXECUTIONS, customer_ids, ids)
    found = [(row["customer_id"], row["execution_id"], _referenced(row)) for row in rows]
    instructions = [instruction_id_of(execution_id) for _, execution_id, _ in found]
    return [*found, *await load_instructions(conn, customer_ids, instructions)]


def _referenced(row: Any) -> ReferencedExecution:  # noqa: ANN401 - a record
    return ReferencedExecution(_executions.read(row), row["is_replaced"])


class BillResult(NamedTuple):
    """The trading result of a day in one bill, in cents; positive amounts are received.

    `customers` is what customers paid net for what was met, `dealers` what dealers were paid net as a negative amount,
    `revaluation` the change of the inventory's value at the mark, redemptions included.
    """

    cusip: str
    customers: int
    dealers: int
    revaluation: int

    @property
    def total(self) -> int:
        """The result of the bill."""
        return self.customers + self.dealers + self.revaluation


VALUE_IN_CENTS = "floor((units * mark_micros + 5000) / 10000.0)::bigint"
"""The value of a house position, as `cents_for` rounds it."""
_RESULT = f"""
WITH booked AS MATERIALIZED (
  SELECT cusip, 0 AS customers, -money AS dealers, 0 AS revaluation FROM execution_movement
   WHERE customer_id = $1 AND business_date = $2
  UNION ALL
  SELECT cusip, 0, 0, {VALUE_IN_CENTS} + 10000 * redeemed FROM inventory_position
   WHERE customer_id = $1 AND closed_on = $2
  UNION ALL
  SELECT cusip, 0, 0, -{VALUE_IN_CENTS} FROM inventory_position
   WHERE customer_id = $1
     AND closed_on = (SELECT max(business_date) FROM closing_price WHERE business_date < $2)
)
SELECT cusip, sum(customers)::bigint, sum(dealers)::bigint, sum(revaluation)::bigint FROM (
  SELECT cusip, CASE side WHEN 'BUY' THEN block_cents ELSE -block_cents END AS customers, 0 AS dealers, 0 AS revaluation
    FROM settlement WHERE closed_on = $2 AND from_inventory
  UNION ALL
  SELECT cusip, customers, dealers, revaluation FROM booked) r
 GROUP BY cusip ORDER BY cusip
"""


async def list_results(conn: Db, bank_id: UUID, closed_on: date) -> list[BillResult]:
    """Return the trading result of a day that is closed, by CUSIP."""
    return [BillResult(*row) for row in await conn.fetch(_RESULT, bank_id, closed_on)]
