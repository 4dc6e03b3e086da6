"""Settlements of trades: every row is one block of postings in a journal of the bank, and every block one row."""

from billfold.platform.database.checks import Certainty, declared

SETTLEMENT = "settlement"
KEY = ("settles_on", "cusip", "price_micros", "side", "closed_on")

# A block ends with the posting of its bills. The cash before it passes between the dealer, or the Treasury at
# maturity, and the bank's reserve; its rounding is the rest of the customers' trades. Nothing is posted for zero cents.
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
SELECT closed_on, settles_on, cusip, units, side, sign * coalesce(cash, 0) AS block_cents,
       sign * coalesce(cash + rounding, cash, rounding, 0) AS customers_cents
  FROM (SELECT closed_on, settles_on, max(asset) FILTER (WHERE own = 'custodian') AS cusip,
               max(amount) FILTER (WHERE own = 'custodian') AS units,
               CASE WHEN min(contra) <> max(contra) THEN NULL WHEN min(contra) = 'treasury' THEN 'MATURITY'
                    WHEN sum(moved) FILTER (WHERE own = 'custodian') < 0 THEN 'BUY' ELSE 'SELL' END AS side,
               sum(moved) FILTER (WHERE own = 'reserve') AS cash,
               sum(moved) FILTER (WHERE own = 'rounding') AS rounding,
               CASE WHEN sum(moved) FILTER (WHERE own = 'custodian') < 0 THEN 1 ELSE -1 END AS sign
          FROM ({_POSTINGS}) p GROUP BY customer_id, entry_no, block, closed_on, settles_on) b
"""
_BLOCK = "closed_on, settles_on, cusip, units, side, block_cents, customers_cents"
# Blocks that are alike are counted, so that each row has a block of its own.
_COMPARED = f"""
SELECT {", ".join(KEY)}, is_row, is_posted
  FROM (SELECT true AS is_row, price_micros, {_BLOCK},
               row_number() OVER (PARTITION BY {_BLOCK} ORDER BY price_micros) AS nth FROM settlement) s
  FULL JOIN (SELECT true AS is_posted, {_BLOCK}, row_number() OVER (PARTITION BY {_BLOCK}) AS nth
               FROM ({_POSTED}) p) p USING ({_BLOCK}, nth)
"""
_QUERIES = {
    (SETTLEMENT, Certainty.DERIVED): {
        "no journal of the bank settles it": f"SELECT {', '.join(KEY)} FROM ({_COMPARED}) c WHERE is_posted IS NULL",
    },
    (SETTLEMENT, Certainty.SUSPECT): {
        "a journal of the bank settles it, and the row is missing": f"""
            SELECT settles_on, cusip, side, closed_on FROM ({_COMPARED}) c WHERE is_row IS NULL""",
    },
}
CHECKS = tuple(declared(_QUERIES))
COUNTED = (SETTLEMENT,)
