"""Look-ups in the directory, kept in memory: what is found once never changes."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING
from uuid import UUID

from billfold.domain.directory.types import CustomerRow, Entry

if TYPE_CHECKING:
    from billfold.kit.db import Connection, Pool

ENTRIES_KEPT = 100_000

_ENTRY = """
SELECT d.customer_id, d.object_id, c.partner_id
  FROM directory d JOIN customer c USING (customer_id)
 WHERE d.kind = $1 AND d.value = $2
"""
_CUSTOMER = """
SELECT customer_id, partner_id, role, type, name, account_status, profile, opened_at, closed_at,
       closure_reason
  FROM customer WHERE customer_id = $1
"""


class Directory:
    """The directory of one process. Names not found are asked for again each time."""

    __slots__ = ("_entries", "_kept", "_pool")

    def __init__(self, pool: Pool, *, kept: int = ENTRIES_KEPT) -> None:
        self._pool = pool
        self._kept = kept
        self._entries: OrderedDict[tuple[str, UUID | str], Entry] = OrderedDict()

    async def find(self, kind: str, value: UUID | str) -> Entry | None:
        """Return what a name stands for, or None. Kinds: customer, pocket, transfer, ..."""
        key = (kind, value)
        known = self._entries.get(key)
        if known is not None:
            self._entries.move_to_end(key)
            return known
        row = await self._pool.fetchrow(_ENTRY, kind, str(value))
        if row is None:
            return None
        entry = Entry(row["customer_id"], row["object_id"], row["partner_id"])
        self._entries[key] = entry
        if len(self._entries) > self._kept:
            self._entries.popitem(last=False)
        return entry


async def find_customer(conn: Connection | Pool, customer_id: UUID) -> CustomerRow | None:
    """Return the row of a customer as it is now, or None."""
    row = await conn.fetchrow(_CUSTOMER, customer_id)
    return None if row is None else CustomerRow(*row)
