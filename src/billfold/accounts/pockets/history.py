"""The state of a pocket at an instant: a snapshot, and at most one day's rows after it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import date, datetime
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

import msgspec

from billfold.accounts.pockets.types import PocketRow
from billfold.bills.rules.earnings import PocketState

if TYPE_CHECKING:
    from asyncpg import Record

    from billfold.platform.database.connection import (Connection, Pool)

JOURNAL_NO_MAX = 2**63 - 1
_TOTALS = ("cash", "earnings_basis", "inflow", "outflow", "fees", "realised")

_SAME_DAY = f"""customer_id = k.customer_id AND pocket_id = k.pocket_id
       AND entry_no > coalesce(e.entry_no, 0)
       AND entry_no <= coalesce(n.entry_no, {JOURNAL_NO_MAX})"""
# Of each boundary: the last day that ended before its own, and the pocket's rows from there up to
# it. The next snapshot bounds them from above, so they are one day's rows at most; and none are
# looked at when the first of them comes later, as at the beginning of a day: no journal goes back.
_STATES_BEFORE = f"""
SELECT e.cash, e.positions, e.earnings_basis, e.inflow, e.outflow, e.fees, e.realised,
       t.rows AS trades, a.rows AS activities
  FROM unnest($1::uuid[], $2::uuid[], $3::date[], $4::timestamptz[]) WITH ORDINALITY
       AS k(customer_id, pocket_id, business_date, at, nth)
  LEFT JOIN LATERAL (
    SELECT * FROM snapshot s
     WHERE s.customer_id = k.customer_id AND s.pocket_id = k.pocket_id
       AND s.business_date < k.business_date
     ORDER BY s.business_date DESC LIMIT 1
  ) e ON true
  LEFT JOIN LATERAL (
    SELECT s.entry_no FROM snapshot s
     WHERE s.customer_id = k.customer_id AND s.pocket_id = k.pocket_id
       AND s.business_date >= k.business_date
     ORDER BY s.business_date LIMIT 1
  ) n ON true
 CROSS JOIN LATERAL (
    SELECT json_agg(json_build_array(activity, incoming, cusip, units, notional,
                                     earnings_basis)) AS rows
      FROM trade
     WHERE {_SAME_DAY} AND traded_at < k.at
       AND (SELECT traded_at FROM trade WHERE {_SAME_DAY} ORDER BY entry_no LIMIT 1) < k.at
  ) t
 CROSS JOIN LATERAL (
    SELECT json_agg(json_build_array(type, direction, amount)) AS rows
      FROM transaction
     WHERE {_SAME_DAY} AND booked_at < k.at AND (swept OR type <> 'CARD')
       AND (SELECT booked_at FROM transaction WHERE {_SAME_DAY} ORDER BY entry_no LIMIT 1) < k.at
  ) a
 ORDER BY k.nth
"""


class Boundary(NamedTuple):
    """An instant in the life of a pocket, and the business date it belongs to."""

    customer_id: UUID
    pocket_id: UUID
    business_date: date
    at: datetime


def current_pocket_state(pocket: PocketRow) -> PocketState:
    """The live state."""
    totals = {name: getattr(pocket, name) for name in _TOTALS}
    return PocketState(positions=tuple(pocket.positions().items()), **totals)


async def pocket_states_before(conn: Connection | Pool, boundaries: Sequence[Boundary]) -> list[PocketState]:
    """The state just before each boundary, in their order."""
    if not boundaries:
        return []
    rows = await conn.fetch(_STATES_BEFORE, *map(list, zip(*boundaries, strict=True)))
    return [_replay(row) for row in rows]


def _replay(row: Record) -> PocketState:
    """Return the state of the snapshot with the day's rows after it."""
    held: Counter[str] = Counter(dict(msgspec.json.decode(row["positions"] or "[]")))
    state: Counter[str] = Counter({name: row[name] or 0 for name in _TOTALS})
    for activity, incoming, cusip, units, notional, basis in msgspec.json.decode(row["trades"] or "[]"):
        sign = 1 if incoming else -1
        held[cusip] += sign * units
        state["earnings_basis"] += sign * basis
        if activity in {"BUY", "SELL", "MATURITY"}:
            state["cash"] -= sign * notional
        else:
            # Bills that come or go in kind are a flow.
            state["inflow" if incoming else "outflow"] += notional
        if not incoming:
            state["realised"] += notional - basis
    for type_, direction, amount in msgspec.json.decode(row["activities"] or "[]"):
        is_credit = direction == "CREDIT"
        state["cash"] += amount if is_credit else -amount
        state["fees" if type_ == "FEE" else "inflow" if is_credit else "outflow"] += amount
    return PocketState(positions=tuple((cusip, units) for cusip, units in held.items() if units), **state)
