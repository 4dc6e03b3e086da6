"""Clearing: settlements between the rails and the bank, and the payments that explain each rail.

A rail's accounts of all customers and of the bank hold exactly what is under way: the payments
whose settlement has not come.
"""

from datetime import date, timedelta

from billfold.ledger.book.book import USD
from billfold.payments.clearing.store import EVER, balances, list_cleared
from billfold.payments.clearing.types import RAILS, ClearingTotals
from billfold.payments.files.types import SETTLEMENT_LOOKBACK
from billfold.platform.database.checks import Certainty, Findings, declared
from billfold.platform.database.connection import Connection

TABLE = "clearing"

# What the journals of kind `clearing` say, beside their rows.
_ROWS = """
SELECT customer_id, entry_no, c.rail IS NULL AS is_missing, d.rail IS NULL AS is_extra
  FROM clearing c
  FULL JOIN
       (SELECT j.customer_id, j.entry_no, upper(substr(min(a.kind), 6)) AS rail,
               j.settles_on, j.business_date AS closed_on,
               coalesce(sum(l.amount) FILTER (WHERE l.credit = a.account_no), 0)::bigint AS inflow,
               coalesce(sum(l.amount) FILTER (WHERE l.debit = a.account_no), 0)::bigint AS outflow
          FROM journal_entry j JOIN posting l USING (customer_id, entry_no)
          JOIN account a ON a.customer_id = l.customer_id AND a.account_no IN (l.debit, l.credit)
         WHERE j.kind = 'clearing' AND a.kind LIKE 'rail:%'
         GROUP BY j.customer_id, j.entry_no, j.settles_on, j.business_date) d
       USING (customer_id, entry_no)
 WHERE (c.rail, c.settles_on, c.closed_on, c.inflow, c.outflow)
       IS DISTINCT FROM (d.rail, d.settles_on, d.closed_on, d.inflow, d.outflow)
"""
_QUERIES = {
    (TABLE, Certainty.MISSING): {
        "the row is missing": f"SELECT customer_id, entry_no FROM ({_ROWS}) d WHERE d.is_missing",
    },
    (TABLE, Certainty.DERIVED): {
        "no settlement journal of the bank explains it": f"""
            SELECT customer_id, entry_no FROM ({_ROWS}) d WHERE d.is_extra""",
        "it differs from its journal": f"""
            SELECT customer_id, entry_no FROM ({_ROWS}) d WHERE NOT d.is_missing AND NOT d.is_extra""",
    },
}
CHECKS = tuple(declared(_QUERIES))
COUNTED = (TABLE,)
_BANK = """
SELECT customer_id, business_date FROM ledger_head WHERE customer_id = (SELECT bank_customer_id FROM bank)
"""


async def check_rows(conn: Connection, findings: Findings) -> None:
    """Compare settlements with the payments that they settle, and the rails' balances with payments in transit."""
    bank = await conn.fetchrow(_BANK)
    if bank is None:
        return
    in_transit = dict.fromkeys(RAILS, 0)
    for each in await list_cleared(conn, bank["customer_id"], EVER):
        _compare(findings, each, bank["business_date"])
        in_transit[each.rail] = in_transit.get(each.rail, 0) + each.unsettled_out - each.unsettled_in
    held = await balances(conn)
    for rail, expected in in_transit.items():
        kind = f"rail:{rail.lower()}"
        if held.get(kind, 0) != expected:
            message = f"balance is {held.get(kind, 0)}, but payments in transit explain {expected}"
            findings.add("account", {"kind": kind, "asset": USD}, message, certainty=Certainty.SUSPECT)


def _compare(findings: Findings, each: ClearingTotals, day: date) -> None:
    key = {"rail": each.rail, "settles_on": each.settles_on}
    if each.unsettled_in < 0 or each.unsettled_out < 0:
        message = (
            f"{each.settled_in} and {each.settled_out} cents were settled, {each.inflow} came in"
            f" and {each.outflow} went out"
        )
        findings.add(TABLE, key, message)
    elif day - each.settles_on > SETTLEMENT_LOOKBACK + timedelta(days=1):
        message = f"{each.unsettled_in} cents in and {each.unsettled_out} out were never settled"
        findings.add(TABLE, key, message, certainty=Certainty.SUSPECT)
