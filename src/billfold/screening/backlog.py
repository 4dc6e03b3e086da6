"""The backlog of names to be compared with the current list. Customers take turns: the nth name of each by turn n.

The list is enumerated in a transaction of its own, when its import is committed: a name added earlier is in the
backlog, and a name added later is compared with this list.
"""

from collections.abc import Collection
from typing import NamedTuple
from uuid import UUID

from billfold.platform.database.connection import Connection, Db

_ENUMERATED = "UPDATE sanctions_list SET is_enumerated = true WHERE is_current AND NOT is_enumerated RETURNING list_id"
_ENUMERATE = """
INSERT INTO sanctions_backlog (is_counterparty, subject_id, customer_id, turn)
SELECT false, customer_id, customer_id, 0 FROM customer WHERE role <> 'house' AND account_status <> 'CLOSED'
UNION ALL
SELECT false, applicant_id, applicant_id, 0 FROM application
 WHERE submitted_at IS NOT NULL AND status NOT IN ('APPROVED', 'REJECTED', 'CLOSED')
UNION ALL
SELECT true, counterparty_id, customer_id, row_number() OVER (PARTITION BY customer_id ORDER BY counterparty_id)
  FROM counterparty JOIN customer USING (customer_id) WHERE status <> 'UNLINKED' AND account_status <> 'CLOSED'
ON CONFLICT (subject_id) DO NOTHING
"""
_NEXT = """
SELECT is_counterparty, subject_id, customer_id FROM sanctions_backlog
 WHERE subject_id <> ALL($1::uuid[]) ORDER BY turn, subject_id LIMIT $2
"""
_DONE = "DELETE FROM sanctions_backlog WHERE subject_id = ANY($1::uuid[])"
_COUNT = "SELECT count(*) FROM sanctions_backlog"


class Task(NamedTuple):
    """A counterparty, or a customer or applicant with its related parties, to be screened."""

    is_counterparty: bool
    subject_id: UUID
    customer_id: UUID


async def enumerate_list(conn: Connection) -> None:
    """Add all subjects to the backlog, once for each imported list."""
    async with conn.transaction():
        if await conn.fetchval(_ENUMERATED) is not None:
            await conn.execute(_ENUMERATE)


async def list_next(conn: Db, limit: int, *, except_for: Collection[UUID]) -> list[Task]:
    """Return the next subjects."""
    return [Task(*row) for row in await conn.fetch(_NEXT, except_for, limit)]


async def complete_subjects(conn: Db, subject_ids: Collection[UUID]) -> None:
    """Remove screened subjects from the backlog."""
    await conn.execute(_DONE, subject_ids)


async def count_left(conn: Db) -> int:
    """Return the size of the backlog."""
    left: int = await conn.fetchval(_COUNT)
    return left
