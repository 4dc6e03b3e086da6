"""What the house holds for nobody: every item is what its commands said, and suspense its sum."""

from __future__ import annotations

from typing import TYPE_CHECKING

from billfold.accounts.checks import run_queries
from billfold.ledger.book.book import USD
from billfold.treasury.custody.checks import CUSTODY
from billfold.treasury.custody.checks import TABLE as CUSTODY_TABLE
from billfold.verify.query_check import Query
from billfold.verify.report import MISSING, SUSPECT, Findings
from billfold.verify.streams import PATIENCE_SECONDS

if TYPE_CHECKING:
    from billfold.platform.database.pool import Connection
    from billfold.verify.customers import Walk

TABLE = "suspense_item"

_BEGUN = """
SELECT customer_id, outcome->>'item_id' AS item_id, outcome->>'rail' AS rail,
       outcome->>'direction' AS direction, outcome->>'amount' AS amount,
       outcome->>'reason' AS reason, outcome->>'journal_no' AS journal_no, booked_at
  FROM command WHERE accepted AND kind = 'HoldInSuspense'
"""
_ENDED = """
SELECT customer_id, outcome->>'item_id' AS item_id, outcome->>'status' AS status,
       outcome->>'journal_no' AS journal_no, outcome->>'return_reason' AS return_reason,
       outcome->>'owner_id' AS owner_id, booked_at
  FROM command WHERE accepted AND kind IN ('ReturnFromSuspense', 'AssignFromSuspense')
"""
_QUERIES = (
    Query(
        "suspense", TABLE, "it is there twice",
        """SELECT customer_id, item_id FROM suspense_item GROUP BY 1, 2 HAVING count(*) > 1
             ORDER BY 1, 2 LIMIT 100""",
        MISSING,
    ),
    Query(
        "suspense", TABLE, "the command that held it said otherwise",
        f"""SELECT i.customer_id, i.item_id FROM suspense_item i LEFT JOIN ({_BEGUN}) b
              ON b.customer_id = i.customer_id AND b.item_id = i.item_id::text
             WHERE (i.rail, i.direction, i.amount::text, i.reason, i.journal_no::text, i.held_at)
                   IS DISTINCT FROM
                   (b.rail, b.direction, b.amount, b.reason, b.journal_no, b.booked_at)
             ORDER BY 1, 2 LIMIT 100""",
    ),
    Query(
        "suspense", TABLE, "a command held it, and it is not there",
        f"""SELECT b.customer_id, b.item_id FROM ({_BEGUN}) b WHERE NOT EXISTS (
              SELECT 1 FROM suspense_item i
               WHERE i.customer_id = b.customer_id AND i.item_id::text = b.item_id)
             ORDER BY 1, 2 LIMIT 100""",
        MISSING,
    ),
    Query(
        "suspense", TABLE, "its last command said something else became of it",
        f"""SELECT i.customer_id, i.item_id FROM suspense_item i LEFT JOIN ({_ENDED}) e
              ON e.customer_id = i.customer_id AND e.item_id = i.item_id::text
             WHERE (i.status, i.ended_journal_no::text, i.return_reason, i.owner_id::text,
                    i.ended_at)
                   IS DISTINCT FROM (coalesce(e.status, 'HELD'), e.journal_no, e.return_reason,
                                     e.owner_id, e.booked_at)
             ORDER BY 1, 2 LIMIT 100""",
    ),
)  # fmt: skip
_HELD = """
SELECT coalesce(sum(CASE direction WHEN 'CREDIT' THEN amount ELSE -amount END), 0)::bigint
  FROM suspense_item WHERE status = 'HELD'
"""


async def check_held(conn: Connection, found: Findings, walk: Walk) -> None:
    """Compare the items with their commands, and their sum with the account."""
    found.checked[TABLE] = await conn.fetchval("SELECT count(*) FROM suspense_item")
    await run_queries(conn, found, (*_QUERIES, *CUSTODY))
    found.checked[CUSTODY_TABLE] = await conn.fetchval("SELECT count(*) FROM security_transfer")
    held = await conn.fetchval(_HELD, timeout=PATIENCE_SECONDS)
    if walk.totals["suspense", USD] != held:
        wrong = f"suspense holds {walk.totals['suspense', USD]}, its items explain {held}"
        found.add("house", "account", {"kind": "suspense", "asset": USD}, wrong, SUSPECT)
