"""Settlements of trades: every row has its postings in a journal of the bank, and every posting its row."""

from __future__ import annotations

from billfold.platform.checks import Certainty, Check

SETTLEMENT = "settlement"
KEY = ("settles_on", "cusip", "price_micros", "side", "closed_on")

_POSTINGS = """
SELECT j.business_date AS closed_on, j.settles_on, l.asset, l.amount, d.kind AS debit, c.kind AS credit,
       CASE WHEN d.kind = 'custodian' THEN 'BUY' WHEN d.kind = 'street' THEN 'SELL' ELSE 'MATURITY' END AS side
  FROM journal_entry j JOIN posting l USING (customer_id, entry_no)
  JOIN account d ON d.customer_id = l.customer_id AND d.account_no = l.debit
  JOIN account c ON c.customer_id = l.customer_id AND c.account_no = l.credit
 WHERE j.kind = 'settlement'
"""
_OF_ROW = "p.closed_on = s.closed_on AND p.settles_on = s.settles_on"
# Nothing is posted for zero cents. The other account of cash is the dealer's, or the Treasury's at maturity.
CHECKS = (
    Check(
        SETTLEMENT,
        "no journal of the bank settles it",
        f"""WITH posting AS MATERIALIZED ({_POSTINGS})
            SELECT {", ".join(f"s.{name}" for name in KEY)} FROM settlement s
             WHERE NOT EXISTS (SELECT 1 FROM posting p
                     WHERE {_OF_ROW} AND p.asset = s.cusip AND p.amount = s.units AND p.side = s.side)
                OR s.block_cents <> 0 AND NOT EXISTS (SELECT 1 FROM posting p
                     WHERE {_OF_ROW} AND p.asset = 'USD' AND p.amount = abs(s.block_cents)
                       AND CASE WHEN (s.side = 'BUY') = (s.block_cents > 0) THEN p.credit ELSE p.debit END = 'reserve'
                       AND CASE WHEN (s.side = 'BUY') = (s.block_cents > 0) THEN p.debit ELSE p.credit END
                           = CASE s.side WHEN 'MATURITY' THEN 'treasury' ELSE 'street' END)""",
    ),
    Check(
        SETTLEMENT,
        "a journal of the bank settles it, and the row is missing",
        f"""SELECT p.settles_on, p.asset AS cusip, p.side, p.closed_on FROM ({_POSTINGS}) p
             WHERE p.asset <> 'USD' AND NOT EXISTS (SELECT 1 FROM settlement s
               WHERE {_OF_ROW} AND s.cusip = p.asset AND s.units = p.amount AND s.side = p.side)""",
        certainty=Certainty.SUSPECT,
    ),
)
COUNTED = (SETTLEMENT,)
