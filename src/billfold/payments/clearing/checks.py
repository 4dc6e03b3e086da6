"""Checks of clearing: settlements between the rails and the bank, and the payments that explain each rail.

A rail's accounts of all customers and of the bank hold exactly the money in transit: the payments
that have not settled. Of the settlements of trades every row is one block of postings in a
journal of the bank, and every block one row.
"""

from datetime import date, timedelta

from billfold.ledger.book.book import USD
from billfold.payments.clearing.rules import RAILS, ClearingTotals
from billfold.payments.clearing.store import EVER, balances, list_cleared
from billfold.payments.files.types import SETTLEMENT_LOOKBACK
from billfold.platform.database.checks import Certainty, Findings, declared
from billfold.platform.database.connection import Connection

TABLE = "clearing"

# The rows of the journals of kind `clearing`, compared with the rows that are stored.
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
SETTLEMENT = "settlement"
KEY = ("settles_on", "cusip", "price_micros", "side", "closed_on")

# A block ends with the posting of its bills. The cash before it moves between the dealer, or the Treasury at maturity,
# and the bank's reserve or inventory; its rounding is the rest of the customers' trades. Zero cents are not posted.
_POSTINGS = """
SELECT j.customer_id, j.entry_no, j.business_date AS closed_on, j.settles_on, l.asset, l.amount,
       CASE WHEN d.kind IN ('street', 'treasury') THEN d.kind ELSE c.kind END AS contra,
       CASE WHEN d.kind IN ('street', 'treasury') THEN c.kind ELSE d.kind END AS own,
       CASE WHEN d.kind IN ('street', 'treasury') THEN l.amount ELSE -l.amount END AS moved,
       count(*) FILTER (WHERE l.asset <> 'USD')
         OVER (PARTITION BY j.customer_id, j.entry_no ORDER BY l.posting_no DESC) AS block
  FROM journal_entry j JOIN posting l USING (customer_id, entry_no)
  JOIN account d ON d.customer_id = l.customer_id AND d.account_no = l.debit
  JOIN account c ON c.customer_id = l.customer_id AND c.account_no = l.credit
 WHERE j.kind = 'settlement'
"""
_POSTED = f"""
SELECT closed_on, settles_on, cusip, units, side, from_inventory, sign * coalesce(cash, 0) AS block_cents,
       sign * coalesce(cash + rounding, cash, rounding, 0) AS customers_cents
  FROM (SELECT closed_on, settles_on, max(asset) FILTER (WHERE asset <> 'USD') AS cusip,
               max(amount) FILTER (WHERE asset <> 'USD') AS units, bool_or(own = 'inventory') AS from_inventory,
               CASE WHEN min(contra) <> max(contra) THEN NULL WHEN min(contra) = 'treasury' THEN 'MATURITY'
                    WHEN sum(moved) FILTER (WHERE asset <> 'USD') < 0 THEN 'BUY' ELSE 'SELL' END AS side,
               sum(moved) FILTER (WHERE asset = 'USD' AND own <> 'rounding') AS cash,
               sum(moved) FILTER (WHERE own = 'rounding') AS rounding,
               CASE WHEN sum(moved) FILTER (WHERE asset <> 'USD') < 0 THEN 1 ELSE -1 END AS sign
          FROM ({_POSTINGS}) p GROUP BY customer_id, entry_no, block, closed_on, settles_on) b
"""
_BLOCK = "closed_on, settles_on, cusip, units, side, block_cents, customers_cents, from_inventory"
# Equal blocks are counted, so that each row has its own block.
_COMPARED = f"""
SELECT {", ".join(KEY)}, is_row, is_posted
  FROM (SELECT true AS is_row, price_micros, {_BLOCK},
               row_number() OVER (PARTITION BY {_BLOCK} ORDER BY price_micros) AS nth FROM settlement) s
  FULL JOIN (SELECT true AS is_posted, {_BLOCK}, row_number() OVER (PARTITION BY {_BLOCK}) AS nth
               FROM ({_POSTED}) p) p USING ({_BLOCK}, nth)
"""
_QUERIES = {
    (TABLE, Certainty.MISSING): {
        "the row is missing": f"SELECT customer_id, entry_no FROM ({_ROWS}) d WHERE d.is_missing"
    },
    (TABLE, Certainty.DERIVED): {
        "no settlement journal of the bank explains it": f"""
            SELECT customer_id, entry_no FROM ({_ROWS}) d WHERE d.is_extra""",
        "it differs from its journal": f"""
            SELECT customer_id, entry_no FROM ({_ROWS}) d WHERE NOT d.is_missing AND NOT d.is_extra""",
    },
    (SETTLEMENT, Certainty.DERIVED): {
        "no journal of the bank settles it": f"SELECT {', '.join(KEY)} FROM ({_COMPARED}) c WHERE is_posted IS NULL"
    },
    (SETTLEMENT, Certainty.SUSPECT): {
        "a journal of the bank settles it, and the row is missing": f"""
            SELECT settles_on, cusip, side, closed_on FROM ({_COMPARED}) c WHERE is_row IS NULL"""
    },
}
CHECKS = tuple(declared(_QUERIES))
COUNTED = (TABLE, SETTLEMENT)
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
