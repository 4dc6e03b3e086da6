"""Checks of the desk: executions and settlements equal their postings, inventory and result recompute from them.

Per CUSIP, what customers bought and the inventory are what dealers delivered or still owe, less what was redeemed; a
check of `verify` adds the custodian. The result is what customers paid, less what dealers were paid, at the last mark.
"""

from billfold.platform.database.checks import Certainty, declared
from billfold.trading.store import VALUE_IN_CENTS

# What each posting moved on a dealer's account: bills received are debits, money owed is a credit.
_POSTED = """
SELECT j.customer_id, j.entry_no, substr(CASE WHEN d.kind LIKE 'dealer:%' THEN d.kind ELSE c.kind END, 8) AS dealer,
       p.asset, CASE WHEN d.kind LIKE 'dealer:%' THEN -p.amount ELSE p.amount END AS owed
  FROM journal_entry j JOIN posting p USING (customer_id, entry_no)
  JOIN account d ON d.customer_id = p.customer_id AND d.account_no = p.debit
  JOIN account c ON c.customer_id = p.customer_id AND c.account_no = p.credit
 WHERE j.kind = '{kind}' AND (d.kind LIKE 'dealer:%' OR c.kind LIKE 'dealer:%')
"""


def _differing(kind: str, moved: str, sign: int) -> str:
    """Return the entries of a kind whose postings, by dealer and asset, differ from their rows."""
    return f"""
      SELECT customer_id, entry_no FROM (
        SELECT customer_id, entry_no, dealer, asset, sum(owed) AS owed FROM ({_POSTED.format(kind=kind)}) p
         GROUP BY customer_id, entry_no, dealer, asset) p
      FULL JOIN (
        SELECT customer_id, entry_no, dealer, asset, sum(owed) AS owed FROM (
          SELECT customer_id, entry_no, dealer, cusip AS asset, {-sign} * units AS owed FROM {moved}
          UNION ALL
          SELECT customer_id, entry_no, dealer, 'USD', {sign} * money FROM {moved}) m
         GROUP BY customer_id, entry_no, dealer, asset) m USING (customer_id, entry_no, dealer, asset)
       WHERE coalesce(p.owed, 0) <> coalesce(m.owed, 0)"""


_EXECUTIONS = _differing("execution", "execution_movement", 1)
_SETTLEMENTS = _differing("dealer_settlement", "dealer_settlement", -1)
_BLOCKS = """
SELECT closed_on, cusip, CASE side WHEN 'BUY' THEN units ELSE -units END AS units,
       CASE side WHEN 'BUY' THEN block_cents ELSE -block_cents END AS cents
  FROM settlement WHERE from_inventory
"""
# Units of breaks with the custodian that two people posted to the inventory.
_FOUND = """
SELECT b.subject AS cusip, coalesce(b.stated, 0) - coalesce(b.booked, 0) AS units, j.business_date
  FROM reconciliation_break b JOIN journal_entry j USING (customer_id, entry_no) WHERE b.resolution = 'INVENTORY'
"""
# The inventory of each close and bill, from what was executed, met, redeemed and found by then.
_POSITIONS = f"""
SELECT p.customer_id, p.closed_on, p.cusip, p.units,
       (SELECT coalesce(sum(m.units), 0) FROM execution_movement m
         WHERE m.customer_id = p.customer_id AND m.cusip = p.cusip AND m.business_date <= p.closed_on)
       - (SELECT coalesce(sum(b.units), 0) FROM ({_BLOCKS}) b WHERE b.cusip = p.cusip AND b.closed_on <= p.closed_on)
       - (SELECT coalesce(sum(h.redeemed), 0) FROM inventory_position h
           WHERE h.customer_id = p.customer_id AND h.cusip = p.cusip AND h.closed_on <= p.closed_on)
       + (SELECT coalesce(sum(f.units), 0) FROM ({_FOUND}) f
           WHERE f.cusip = p.cusip AND f.business_date <= p.closed_on) AS expected
  FROM inventory_position p
"""
_HELD = """
SELECT kind, asset, sum(credits - debits) AS balance FROM account WHERE {kinds} GROUP BY kind, asset
"""
_INVENTORY = f"""
SELECT asset, coalesce(h.balance, 0) AS balance, coalesce(e.units, 0) AS expected
  FROM ({_HELD.format(kinds="kind = 'inventory' AND asset <> 'USD'")}) h
  FULL JOIN (SELECT cusip AS asset, sum(units) AS units FROM (
               SELECT cusip, units FROM execution_movement
               UNION ALL SELECT cusip, -units FROM ({_BLOCKS}) b
               UNION ALL SELECT cusip, -redeemed FROM inventory_position
               UNION ALL SELECT cusip, units FROM ({_FOUND}) f) m GROUP BY cusip) e USING (asset)
 WHERE coalesce(h.balance, 0) <> coalesce(e.units, 0)
"""
_LAST_CLOSE = "(SELECT coalesce(max(business_date), 'epoch') FROM closing_price)"
_VALUE = f"SELECT coalesce(sum({VALUE_IN_CENTS}), 0) FROM inventory_position WHERE closed_on = {_LAST_CLOSE}"
# The value of the inventory at the last close, and what was executed since.
_AT_THE_MARK = f"""
SELECT 'inventory' AS kind, 'USD' AS asset, balance, expected FROM (
  SELECT (SELECT coalesce(sum(balance), 0) FROM ({_HELD.format(kinds="kind = 'inventory' AND asset = 'USD'")}) h)
         AS balance,
         -({_VALUE}) - (SELECT coalesce(sum(money), 0) FROM execution_movement WHERE business_date > {_LAST_CLOSE})
         AS expected) e
 WHERE balance <> expected
"""
_RESULT = f"""
SELECT 'trading_gains' AS kind, 'USD' AS asset, balance, expected FROM (
  SELECT (SELECT coalesce(sum(balance), 0) FROM ({_HELD.format(kinds="kind = 'trading_gains'")}) h) AS balance,
         (SELECT coalesce(sum(cents), 0) FROM ({_BLOCKS}) b)
         - (SELECT coalesce(sum(money), 0) FROM execution_movement WHERE business_date <= {_LAST_CLOSE})
         + (SELECT coalesce(sum(10000 * redeemed), 0) FROM inventory_position) + ({_VALUE})
         - (SELECT coalesce(sum(difference), 0) FROM dealer_settlement)
         - (SELECT coalesce(sum(d.money - 10000 * d.units), 0) FROM settlement_difference d
              JOIN settlement_instruction i USING (customer_id, instruction_id)
             WHERE d.status = 'ACCEPTED' AND i.counterparty = 'redemptions') AS expected) e
 WHERE balance <> expected
"""
_OF_THE_ORDER = """
SELECT o.customer_id, o.order_id, o.status, o.units, o.filled_units, coalesce(sum(e.units), 0) AS executed
  FROM dealer_order o
  LEFT JOIN execution e ON e.customer_id = o.customer_id AND e.order_id = o.order_id AND e.kind <> 'BUST'
       AND NOT EXISTS (SELECT 1 FROM execution c WHERE c.customer_id = e.customer_id AND c.corrects = e.execution_id)
 GROUP BY o.customer_id, o.order_id
"""
_QUERIES = {
    ("execution", Certainty.DERIVED): {
        "its postings differ": f"""
            SELECT customer_id, execution_id FROM execution JOIN ({_EXECUTIONS}) d USING (customer_id, entry_no)""",
    },
    ("execution", Certainty.MISSING): {
        "a journal entry has postings that no execution explains": f"""
            SELECT d.customer_id, d.entry_no FROM ({_EXECUTIONS}) d
             WHERE NOT EXISTS (SELECT 1 FROM execution e
                                WHERE e.customer_id = d.customer_id AND e.entry_no = d.entry_no)""",
    },
    ("dealer_settlement", Certainty.DERIVED): {"its postings differ": _SETTLEMENTS},
    ("inventory_position", Certainty.DERIVED): {
        "units are {units}, executions and trades say {expected}": f"""
            SELECT * FROM ({_POSITIONS}) p WHERE units <> expected""",
        "the mark is {mark_micros}, the closing price is {closing}": """
            SELECT p.customer_id, p.closed_on, p.cusip, p.mark_micros, c.mark_micros AS closing
              FROM inventory_position p LEFT JOIN closing_price c ON c.business_date = p.closed_on AND c.cusip = p.cusip
             WHERE p.redeemed = 0 AND p.mark_micros IS DISTINCT FROM c.mark_micros""",
    },
    ("dealer_order", Certainty.DERIVED): {
        "{filled_units} units are filled, its executions are of {executed}": f"""
            SELECT customer_id, order_id, filled_units, executed FROM ({_OF_THE_ORDER}) o
             WHERE filled_units <> executed""",
        "it is {status} with {filled_units} of {units} units filled": f"""
            SELECT customer_id, order_id, status, filled_units, units FROM ({_OF_THE_ORDER}) o
             WHERE status = 'FILLED' AND filled_units < units
                OR status = 'PARTIALLY_FILLED' AND filled_units NOT BETWEEN 1 AND units - 1""",
    },
    ("account", Certainty.SUSPECT): {
        "the inventory is {balance} units, executions and trades say {expected}": _INVENTORY,
        "balance is {balance}, bills at the mark explain {expected}": _AT_THE_MARK,
        "balance is {balance}, executions and trades explain {expected}": _RESULT,
    },
}
CHECKS = tuple(declared(_QUERIES))
COUNTED = ("dealer_order", "dealer_quote", "execution", "dealer_settlement", "inventory_position")
