"""What is between the rails and the house: its settlements, and what explains each rail.

A rail's accounts of all customers and of the house hold exactly what is under way: the payments
whose settlement has not come.
"""

from __future__ import annotations

from datetime import date, timedelta
from typing import TYPE_CHECKING
from uuid import UUID

from billfold.ledger.book.book import USD
from billfold.payments.clearing.store import DAWN, DUSK, Span, list_cleared
from billfold.payments.clearing.types import RAILS, Cleared
from billfold.platform.dates import et_instant
from billfold.treasury.settlement.worker import LOOK_BACK
from billfold.verify.report import MISSING, SUSPECT, Findings
from billfold.verify.streams import PATIENCE_SECONDS

if TYPE_CHECKING:
    from billfold.platform.database.pool import Connection
    from billfold.verify.customers import Walk

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
_TWICE = """
SELECT customer_id, journal_no FROM clearing GROUP BY 1, 2 HAVING count(*) > 1
 ORDER BY 1, 2 LIMIT 100
"""
_HOUSE = "SELECT house_customer_id FROM bank"


async def check_clearing(conn: Connection, found: Findings, walk: Walk, day: date | None) -> None:
    """Every row is its journal's, nothing was settled that did not move, and all is explained."""
    await _check_rows(conn, found)
    house: UUID | None = await conn.fetchval(_HOUSE)
    if house is None:
        return
    span = Span(DAWN, et_instant(DAWN, 0), DUSK, et_instant(DUSK, 0))
    under_way = dict.fromkeys(RAILS, 0)
    for each in await list_cleared(conn, house, span):
        _compare(found, each, day)
        under_way[each.rail] = under_way.get(each.rail, 0) + each.open_out - each.open_in
    for rail, explained in under_way.items():
        kind = f"rail:{rail.lower()}"
        if walk.totals[kind, USD] != explained:
            wrong = (
                f"all {kind} accounts hold {walk.totals[kind, USD]}, the payments under way"
                f" explain {explained}"
            )
            found.add("house", "account", {"kind": kind, "asset": USD}, wrong, SUSPECT)


async def _check_rows(conn: Connection, found: Findings) -> None:
    found.checked[TABLE] = await conn.fetchval("SELECT count(*) FROM clearing")
    for row in await conn.fetch(_TWICE, timeout=PATIENCE_SECONDS):
        found.add(CHECK, TABLE, dict(row), "it is there twice", MISSING)
    for row in await conn.fetch(_ROWS, timeout=PATIENCE_SECONDS):
        key = {"customer_id": row["customer_id"], "journal_no": row["journal_no"]}
        if row["is_missing"]:
            found.add(CHECK, TABLE, key, "the row is missing", MISSING)
        elif row["is_extra"]:
            found.add(CHECK, TABLE, key, "no journal of the house settles it")
        else:
            found.add(CHECK, TABLE, key, "its journal says otherwise")


def _compare(found: Findings, each: Cleared, day: date | None) -> None:
    key = {"rail": each.rail, "settles_on": each.settles_on}
    if each.open_in < 0 or each.open_out < 0:
        wrong = (
            f"{each.settled_in} and {each.settled_out} cents were settled, {each.came_in} came in"
            f" and {each.went_out} went out"
        )
        found.add(CHECK, TABLE, key, wrong)
    elif day is not None and day - each.settles_on > LOOK_BACK + timedelta(days=1):
        wrong = f"{each.open_in} cents in and {each.open_out} out were never settled"
        found.add(CHECK, TABLE, key, wrong, SUSPECT)
