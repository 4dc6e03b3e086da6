"""Checks of settlement: instructions settle what was confirmed of them, and what is open of all is in transit."""

from billfold.platform.database.checks import Certainty, declared

# Accounts of dealers and of redemptions: money owed is a credit, bills to come are a debit.
_IN_TRANSIT = """
SELECT kind, asset, coalesce(a.balance, 0) AS balance, coalesce(i.open, 0) AS expected
  FROM (SELECT kind, asset, sum(credits - debits)::bigint AS balance FROM account
         WHERE kind LIKE 'dealer:%' OR kind = 'redemptions' GROUP BY kind, asset) a
  FULL JOIN (SELECT counterparty AS kind, asset, sum(open)::bigint AS open FROM (
               SELECT counterparty, cusip AS asset, settled_units - units AS open
                 FROM settlement_instruction WHERE NOT withdrawn
               UNION ALL
               SELECT counterparty, 'USD', money - settled_money FROM settlement_instruction WHERE NOT withdrawn) o
              GROUP BY counterparty, asset) i USING (kind, asset)
 WHERE coalesce(a.balance, 0) <> coalesce(i.open, 0)
"""
_CONFIRMED = """
SELECT i.customer_id, i.instruction_id, i.settled_units, i.settled_money, coalesce(sum(s.units), 0) AS units,
       coalesce(sum(s.money), 0) AS money
  FROM settlement_instruction i LEFT JOIN dealer_settlement s USING (customer_id, instruction_id)
 WHERE i.counterparty <> 'redemptions' GROUP BY i.customer_id, i.instruction_id
HAVING (i.settled_units, i.settled_money) IS DISTINCT FROM (coalesce(sum(s.units), 0), coalesce(sum(s.money), 0))
   AND (i.attempt > 0 OR count(s.entry_no) > 0)
"""
# A bust has no instruction; the row that it replaces has one that is withdrawn.
_EXECUTED = """
SELECT e.customer_id, e.execution_id FROM execution e
  LEFT JOIN settlement_instruction i USING (customer_id, execution_id)
  LEFT JOIN execution c ON c.customer_id = e.customer_id AND c.corrects = e.execution_id
 WHERE e.kind <> 'BUST'
   AND (abs(i.units), abs(i.money), i.settles_on, i.cusip, i.counterparty, i.withdrawn)
       IS DISTINCT FROM (e.units, e.money, e.settles_on, e.cusip, 'dealer:' || e.dealer, c.execution_id IS NOT NULL)
"""
_QUERIES = {
    ("settlement_instruction", Certainty.DERIVED): {
        "{settled_units} units for {settled_money} are settled, {units} for {money} were confirmed": _CONFIRMED,
        "it is {status}, and {open} units are open": """
            SELECT customer_id, instruction_id, status, units - settled_units AS open FROM settlement_instruction
             WHERE status = 'SETTLED' AND units <> settled_units
                OR status NOT IN ('SETTLED', 'CANCELLED', 'PENDING') AND units = settled_units""",
    },
    ("execution", Certainty.SUSPECT): {"no instruction settles it": _EXECUTED},
    ("account", Certainty.SUSPECT): {"balance is {balance}, open instructions explain {expected}": _IN_TRANSIT},
}
CHECKS = tuple(declared(_QUERIES))
COUNTED = ("settlement_instruction", "settlement_difference")
