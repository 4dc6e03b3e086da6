"""Checks of reconciliation: every posting of a break is its difference, and every such entry is of a break."""

from billfold.platform.database.checks import Certainty, declared
from billfold.reconciliation.types import Break, ReconciledDay

_POSTED = """
SELECT b.customer_id, b.break_id, b.stated, b.booked, p.entry_no,
       CASE WHEN a.account_no = p.debit THEN p.amount ELSE -p.amount END AS posted,
       coalesce(b.stated, 0) - coalesce(b.booked, 0) AS difference
  FROM reconciliation_break b
  LEFT JOIN posting p USING (customer_id, entry_no)
  LEFT JOIN account a ON a.customer_id = b.customer_id AND a.account_no IN (p.debit, p.credit)
       AND a.kind IN ('reserve', 'custodian')
 WHERE b.entry_no IS NOT NULL
"""
CHECKS = tuple(
    declared(
        {
            ("reconciliation_break", Certainty.DERIVED): {
                "it posted {posted}, its difference is {difference}": f"""
                    SELECT customer_id, break_id, posted, difference FROM ({_POSTED}) p
                     WHERE posted IS DISTINCT FROM difference""",
            },
            ("reconciliation_break", Certainty.MISSING): {
                "entry {entry_no} has postings that no break explains": """
                    SELECT j.customer_id, j.entry_no FROM journal_entry j
                     WHERE j.kind = 'reconciliation' AND NOT EXISTS (
                       SELECT 1 FROM reconciliation_break b
                        WHERE b.customer_id = j.customer_id AND b.entry_no = j.entry_no)""",
            },
        }
    )
)
COUNTED = tuple(each.table for each in (ReconciledDay, Break))
