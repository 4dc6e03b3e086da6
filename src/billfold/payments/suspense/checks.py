"""What the house holds for nobody: every item is what its commands said, and suspense its sum."""

from __future__ import annotations

from typing import TYPE_CHECKING

from billfold.ledger.book.book import USD
from billfold.payments.custody.checks import SECURITY_TRANSFER_CHECKS
from billfold.payments.custody.checks import TABLE as CUSTODY_TABLE
from billfold.verify.query_check import Check, run_checks
from billfold.verify.report import MISSING, SUSPECT, Findings
from billfold.verify.streams import STATEMENT_TIMEOUT_SECONDS

if TYPE_CHECKING:
    from billfold.platform.database.pool import Connection
    from billfold.verify.customers import LedgerWalk

TABLE = "suspense_item"

_HELD_OUTCOMES = """
SELECT customer_id, outcome->>'item_id' AS item_id, outcome->>'rail' AS rail,
       outcome->>'direction' AS direction, outcome->>'amount' AS amount,
       outcome->>'reason' AS reason, outcome->>'journal_no' AS journal_no, booked_at
  FROM command WHERE accepted AND kind = 'HoldInSuspense'
"""
_RELEASED_OUTCOMES = """
SELECT customer_id, outcome->>'item_id' AS item_id, outcome->>'status' AS status,
       outcome->>'journal_no' AS journal_no, outcome->>'return_reason' AS return_reason,
       outcome->>'owner_id' AS owner_id, booked_at
  FROM command WHERE accepted AND kind IN ('ReturnFromSuspense', 'AssignFromSuspense')
"""
_QUERIES = (
    Check(
        "suspense",
        TABLE,
        "it is there twice",
        """SELECT customer_id, item_id FROM suspense_item GROUP BY 1, 2 HAVING count(*) > 1
             ORDER BY 1, 2 LIMIT 100""",
        MISSING,
    ),
    Check(
        "suspense",
        TABLE,
        "the command that held it said otherwise",
        f"""SELECT i.customer_id, i.item_id FROM suspense_item i LEFT JOIN ({_HELD_OUTCOMES}) b
              ON b.customer_id = i.customer_id AND b.item_id = i.item_id::text
             WHERE (i.rail, i.direction, i.amount::text, i.reason, i.journal_no::text, i.held_at)
                   IS DISTINCT FROM
                   (b.rail, b.direction, b.amount, b.reason, b.journal_no, b.booked_at)
             ORDER BY 1, 2 LIMIT 100""",
    ),
    Check(
        "suspense",
        TABLE,
        "a command held it, and it is not there",
        f"""SELECT b.customer_id, b.item_id FROM ({_HELD_OUTCOMES}) b WHERE NOT EXISTS (
              SELECT 1 FROM suspense_item i
               WHERE i.customer_id = b.customer_id AND i.item_id::text = b.item_id)
             ORDER BY 1, 2 LIMIT 100""",
        MISSING,
    ),
    Check(
        "suspense",
        TABLE,
        "its last command said something else became of it",
        f"""SELECT i.customer_id, i.item_id FROM suspense_item i LEFT JOIN ({_RELEASED_OUTCOMES}) e
              ON e.customer_id = i.customer_id AND e.item_id = i.item_id::text
             WHERE (i.status, i.ended_journal_no::text, i.return_reason, i.owner_id::text,
                    i.ended_at)
                   IS DISTINCT FROM (coalesce(e.status, 'HELD'), e.journal_no, e.return_reason,
                                     e.owner_id, e.booked_at)
             ORDER BY 1, 2 LIMIT 100""",
    ),
)
_HELD = """
SELECT coalesce(sum(CASE direction WHEN 'CREDIT' THEN amount ELSE -amount END), 0)::bigint
  FROM suspense_item WHERE status = 'HELD'
"""


async def check_suspense(conn: Connection, findings: Findings, ledger_walk: LedgerWalk) -> None:
    """Compare the items with their commands, and their sum with the account."""
    findings.checked[TABLE] = await conn.fetchval("SELECT count(*) FROM suspense_item")
    await run_checks(conn, findings, (*_QUERIES, *SECURITY_TRANSFER_CHECKS))
    findings.checked[CUSTODY_TABLE] = await conn.fetchval("SELECT count(*) FROM security_transfer")
    expected = await conn.fetchval(_HELD, timeout=STATEMENT_TIMEOUT_SECONDS)
    if ledger_walk.totals["suspense", USD] != expected:
        message = f"suspense holds {ledger_walk.totals['suspense', USD]}, its items explain {expected}"
        findings.add("house", "account", {"kind": "suspense", "asset": USD}, message, SUSPECT)
