"""The bank as a whole: what all customers' books say together, and what the house explains."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import TYPE_CHECKING

from billfold.ledger.book.book import USD
from billfold.ledger.checks.accounts import as_number
from billfold.payments.clearing.checks import check_clearing
from billfold.treasury.settlement.checks import KEY, SETTLEMENT
from billfold.treasury.settlement.worker import LOOK_BACK
from billfold.verify.report import SUSPECT, Findings
from billfold.verify.streams import PATIENCE_SECONDS

if TYPE_CHECKING:
    from asyncpg import Record

    from billfold.platform.database.pool import Connection
    from billfold.verify.customers import Walk

# Trades and what was settled of them, wherever the two differ.
_DIFFERENCES = """
SELECT settles_on, cusip, price_micros, side, t.units AS units, t.cents AS cents,
       s.units AS settled_units, s.cents AS settled_cents, s.closed_on
  FROM (SELECT settles_on, cusip, price_micros, activity AS side,
               sum(units) AS units, sum(notional) AS cents
          FROM trade WHERE activity IN ('BUY', 'SELL', 'MATURITY')
         GROUP BY settles_on, cusip, price_micros, activity) t
  FULL JOIN
       (SELECT settles_on, cusip, price_micros, side, max(closed_on) AS closed_on,
               sum(units) AS units, sum(customers_cents) AS cents
          FROM settlement GROUP BY settles_on, cusip, price_micros, side) s
       USING (settles_on, cusip, price_micros, side)
 WHERE (t.units, t.cents) IS DISTINCT FROM (s.units, s.cents)
 ORDER BY settles_on, cusip, price_micros, side
"""
_SETTLED_TRADES = """
SELECT count(*) FROM trade t WHERE activity IN ('BUY', 'SELL', 'MATURITY') AND EXISTS (
  SELECT 1 FROM settlement s
   WHERE s.settles_on = t.settles_on AND s.cusip = t.cusip
     AND s.price_micros = t.price_micros AND s.side = t.activity)
"""
_HOUSE_DAY = """
SELECT h.business_date FROM head h JOIN customer c USING (customer_id) WHERE c.role = 'house'
"""
_COUNTS_ONCE = {"BUY": -1, "SELL": 1, "MATURITY": 1}


class Open(Counter[tuple[str, str]]):
    """What trades that are not settled have left on `street` and `treasury`, by asset."""

    def add(self, row: Record) -> None:
        """Count the part of these trades that is not settled."""
        units = as_number(row["units"]) - as_number(row["settled_units"])
        cents = as_number(row["cents"]) - as_number(row["settled_cents"])
        there = "treasury" if row["side"] == "MATURITY" else "street"
        sign = _COUNTS_ONCE[row["side"]]
        self[there, row["cusip"]] += sign * units
        self[there, USD] -= sign * cents


async def check_house(conn: Connection, found: Findings, walk: Walk) -> None:
    """Everything between the house and its customers is explained by what is not settled yet."""
    day = await conn.fetchval(_HOUSE_DAY, timeout=PATIENCE_SECONDS)
    unsettled = Open()
    for row in await conn.fetch(_DIFFERENCES, timeout=PATIENCE_SECONDS):
        key = {name: row[name] for name in KEY}
        if row["side"] not in _COUNTS_ONCE:
            found.add("settlement", SETTLEMENT, key, "there is no such side")
            continue
        unsettled.add(row)
        settled = as_number(row["settled_units"])
        if settled > as_number(row["units"]):
            wrong = f"{settled} bills were settled, {as_number(row['units'])} were traded"
            found.add("settlement", SETTLEMENT, key, wrong)
        elif settled == as_number(row["units"]):
            wrong = f"{row['settled_cents']} cents were settled, {row['cents']} were traded"
            found.add("settlement", SETTLEMENT, key, wrong)
        elif day is not None and day - row["settles_on"] > LOOK_BACK + timedelta(days=1):
            found.add("settlement", SETTLEMENT, key, "these trades were never settled", SUSPECT)
    await check_clearing(conn, found, walk, day)
    _explain(found, walk, unsettled)
    await _round(conn, found, walk)


def _explain(found: Findings, walk: Walk, unsettled: Open) -> None:
    totals = walk.totals
    for asset in sorted({asset for _, asset in totals} | {asset for _, asset in unsettled}):
        for kind in ("street", "treasury"):
            if totals[kind, asset] != unsettled[kind, asset]:
                wrong = (
                    f"all {kind} accounts hold {totals[kind, asset]}, what is not settled"
                    f" explains {unsettled[kind, asset]}"
                )
                found.add("house", "account", {"kind": kind, "asset": asset}, wrong, SUSPECT)
        if totals["on_us", asset]:
            wrong = f"all on_us accounts together hold {totals['on_us', asset]}"
            found.add("house", "account", {"kind": "on_us", "asset": asset}, wrong, SUSPECT)
        total = sum(balance for (_, held), balance in totals.items() if held == asset)
        if total:
            wrong = f"all accounts together hold {total}"
            found.add("conservation", "account", {"asset": asset}, wrong, SUSPECT)
        held = totals["lot", asset] + unsettled["street", asset] + unsettled["treasury", asset]
        if asset != USD and -totals["custodian", asset] != held:
            has = -totals["custodian", asset]
            wrong = f"the custodian has {has}, customers' settled bills are {held}"
            found.add("house", "account", {"kind": "custodian", "asset": asset}, wrong, SUSPECT)


async def _round(conn: Connection, found: Findings, walk: Walk) -> None:
    """A block and its parts differ by half a cent per trade at most."""
    rounding = walk.totals["rounding", USD]
    trades = as_number(await conn.fetchval(_SETTLED_TRADES, timeout=PATIENCE_SECONDS))
    if 2 * abs(rounding) > trades:
        wrong = f"rounding holds {rounding} cents after {trades} trades"
        found.add("house", "account", {"kind": "rounding", "asset": USD}, wrong, SUSPECT)
