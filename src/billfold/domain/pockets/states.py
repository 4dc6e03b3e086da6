"""The state of a pocket at an instant: a snapshot, and at most one day's rows after it."""

from __future__ import annotations

from datetime import date, datetime
from typing import TYPE_CHECKING
from uuid import UUID

import msgspec

from billfold.domain.pockets.types import PocketRow
from billfold.domain.tbills import PocketState

if TYPE_CHECKING:
    from asyncpg import Record

    from billfold.kit.db import Connection, Pool

# The last day that ended before the boundary's own, and the pocket's rows from there up to the
# boundary. The next snapshot bounds them from above, so they are one day's rows at most.
_BEFORE = """
WITH earlier AS (
  SELECT * FROM snapshot WHERE customer_id = $1 AND pocket_id = $2 AND business_date < $3
   ORDER BY business_date DESC LIMIT 1
), bounds AS (
  SELECT coalesce((SELECT journal_no FROM earlier), 0) AS low,
         coalesce((SELECT journal_no FROM snapshot
                    WHERE customer_id = $1 AND pocket_id = $2 AND business_date >= $3
                    ORDER BY business_date LIMIT 1), 9223372036854775807) AS high
)
SELECT e.cash, e.positions, e.earnings_basis, e.inflow, e.outflow, e.fees, e.realised,
       (SELECT json_agg(json_build_array(t.activity, t.incoming, t.cusip, t.units, t.notional,
                                         t.earnings_basis))
          FROM trade t
         WHERE t.customer_id = $1 AND t.pocket_id = $2
           AND t.journal_no > bounds.low AND t.journal_no <= bounds.high
           AND t.traded_at < $4) AS trades,
       (SELECT json_agg(json_build_array(a.type, a.direction, a.amount))
          FROM activity a
         WHERE a.customer_id = $1 AND a.pocket_id = $2
           AND a.journal_no > bounds.low AND a.journal_no <= bounds.high
           AND a.booked_at < $4) AS activities
  FROM bounds LEFT JOIN earlier e ON true
"""


def state_now(pocket: PocketRow) -> PocketState:
    """The live state."""
    return PocketState(
        positions=tuple(pocket.positions().items()),
        cash=pocket.cash,
        earnings_basis=pocket.earnings_basis,
        inflow=pocket.inflow,
        outflow=pocket.outflow,
        fees=pocket.fees,
        realised=pocket.realised,
    )


async def state_before(
    conn: Connection | Pool,
    customer_id: UUID,
    pocket_id: UUID,
    *,
    business_date: date,
    at: datetime,
) -> PocketState:
    """The state just before `at`, an instant of `business_date`."""
    row = await conn.fetchrow(_BEFORE, customer_id, pocket_id, business_date, at)
    assert row is not None
    state = _Running(row)
    for traded in msgspec.json.decode(row["trades"] or "[]"):
        state.trade(*traded)
    for moved in msgspec.json.decode(row["activities"] or "[]"):
        state.move(*moved)
    return state.frozen()


class _Running:
    """A state while rows are added to it."""

    def __init__(self, row: Record) -> None:
        self.cash = row["cash"] or 0
        self.basis = row["earnings_basis"] or 0
        self.inflow = row["inflow"] or 0
        self.outflow = row["outflow"] or 0
        self.fees = row["fees"] or 0
        self.realised = row["realised"] or 0
        self.held: dict[str, int] = dict(msgspec.json.decode(row["positions"] or "[]"))

    def trade(
        self,
        activity: str,
        incoming: bool,  # noqa: FBT001 - a column of the row
        cusip: str,
        units: int,
        notional: int,
        basis: int,
    ) -> None:
        """Bills in or out; in kind they are flows, bought and sold they are cash."""
        in_kind = activity not in {"BUY", "SELL", "MATURITY"}
        sign = 1 if incoming else -1
        self.held[cusip] = self.held.get(cusip, 0) + sign * units
        self.basis += sign * basis
        if not in_kind:
            self.cash -= sign * notional
        elif incoming:
            self.inflow += notional
        else:
            self.outflow += notional
        if not incoming:
            self.realised += notional - basis

    def move(self, type_: str, direction: str, amount: int) -> None:
        """Money in or out."""
        self.cash += amount if direction == "CREDIT" else -amount
        if type_ == "FEE":
            self.fees += amount
        elif direction == "CREDIT":
            self.inflow += amount
        else:
            self.outflow += amount

    def frozen(self) -> PocketState:
        """The state as it has become."""
        return PocketState(
            positions=tuple((cusip, units) for cusip, units in self.held.items() if units),
            cash=self.cash,
            earnings_basis=self.basis,
            inflow=self.inflow,
            outflow=self.outflow,
            fees=self.fees,
            realised=self.realised,
        )
