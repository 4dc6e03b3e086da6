"""What is between the rails and the house: its settlements, and what explains each rail.

A rail's accounts of all customers and of the house hold exactly what is under way: the payments
whose settlement has not come.
"""

from __future__ import annotations

from datetime import date, timedelta
from typing import TYPE_CHECKING
from uuid import UUID

from billfold.ledger.book.book import USD
from billfold.payments.clearing.store import DATE_MAX, DATE_MIN, SettlementPeriod, list_cleared
from billfold.payments.clearing.types import RAILS, ClearingTotals
from billfold.payments.settlement.worker import LOOKBACK
from billfold.platform.dates import et_instant
from billfold.verify.report import MISSING, SUSPECT, Findings
from billfold.verify.streams import STATEMENT_TIMEOUT_SECONDS

if TYPE_CHECKING:
    from billfold.platform.database.pool import Connection
    from billfold.verify.customers import LedgerWalk

CHECK, TABLE = "clearing", "clearing"

# What the journals of kind `clearing` say, beside their rows.
_ROWS = """
SELECT customer_id, journal_no, c.rail IS NULL AS is_missing, d.rail IS NULL AS is_extra,
       (c.rail, c.settles_on, c.closed_on, c.came_in, c.went_out)
         IS DISTINCT FROM (d.rail, d.settles_on, d.closed_on, d.came_in, d.went_out) AS differs
  FROM clearing c
  FULL JOIN
       (SELECT j.customer_id, j.journal_no, upper(substr(min(a.kind), 6)) AS rail,
               j.settles_on, j.business_date AS closed_on,
               coalesce(sum(l.amount) FILTER (WHERE l.credit = a.account_no), 0)::bigint AS came_in,
               coalesce(sum(l.amount) FILTER (WHERE l.debit = a.account_no), 0)::bigint AS went_out
          FROM journal j JOIN leg l USING (customer_id, journal_no)
          JOIN account a ON a.customer_id = l.customer_id AND a.account_no IN (l.debit, l.credit)
         WHERE j.kind = 'clearing' AND a.kind LIKE 'rail:%'
         GROUP BY j.customer_id, j.journal_no, j.settles_on, j.business_date) d
       USING (customer_id, journal_no)
 WHERE (c.rail, c.settles_on, c.closed_on, c.came_in, c.went_out)
       IS DISTINCT FROM (d.rail, d.settles_on, d.closed_on, d.came_in, d.went_out)
 ORDER BY customer_id, journal_no LIMIT 100
"""
_DUPLICATE = """
SELECT customer_id, journal_no FROM clearing GROUP BY 1, 2 HAVING count(*) > 1
 ORDER BY 1, 2 LIMIT 100
"""
_HOUSE = "SELECT house_customer_id FROM bank"


async def check_clearing(conn: Connection, findings: Findings, ledger_walk: LedgerWalk, day: date | None) -> None:
    """Every row is its journal's, nothing was settled that did not move, and all is explained."""
    await _check_rows(conn, findings)
    house: UUID | None = await conn.fetchval(_HOUSE)
    if house is None:
        return
    span = SettlementPeriod(DATE_MIN, et_instant(DATE_MIN, 0), DATE_MAX, et_instant(DATE_MAX, 0))
    in_transit = dict.fromkeys(RAILS, 0)
    for each in await list_cleared(conn, house, span):
        _compare(findings, each, day)
        in_transit[each.rail] = in_transit.get(each.rail, 0) + each.unsettled_out - each.unsettled_in
    for rail, expected in in_transit.items():
        kind = f"rail:{rail.lower()}"
        if ledger_walk.totals[kind, USD] != expected:
            message = (
                f"all {kind} accounts hold {ledger_walk.totals[kind, USD]}, the payments under way explain {expected}"
            )
            findings.add("house", "account", {"kind": kind, "asset": USD}, message, SUSPECT)


async def _check_rows(conn: Connection, findings: Findings) -> None:
    findings.checked[TABLE] = await conn.fetchval("SELECT count(*) FROM clearing")
    for row in await conn.fetch(_DUPLICATE, timeout=STATEMENT_TIMEOUT_SECONDS):
        findings.add(CHECK, TABLE, dict(row), "it is there twice", MISSING)
    for row in await conn.fetch(_ROWS, timeout=STATEMENT_TIMEOUT_SECONDS):
        key = {"customer_id": row["customer_id"], "journal_no": row["journal_no"]}
        if row["is_missing"]:
            findings.add(CHECK, TABLE, key, "the row is missing", MISSING)
        elif row["is_extra"]:
            findings.add(CHECK, TABLE, key, "no journal of the house settles it")
        else:
            findings.add(CHECK, TABLE, key, "its journal says otherwise")


def _compare(findings: Findings, each: ClearingTotals, day: date | None) -> None:
    key = {"rail": each.rail, "settles_on": each.settles_on}
    if each.unsettled_in < 0 or each.unsettled_out < 0:
        message = (
            f"{each.settled_in} and {each.settled_out} cents were settled, {each.came_in} came in"
            f" and {each.went_out} went out"
        )
        findings.add(CHECK, TABLE, key, message)
    elif day is not None and day - each.settles_on > LOOKBACK + timedelta(days=1):
        message = f"{each.unsettled_in} cents in and {each.unsettled_out} out were never settled"
        findings.add(CHECK, TABLE, key, message, SUSPECT)
