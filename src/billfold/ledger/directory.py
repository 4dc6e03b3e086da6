"""Looks up the directory and caches it: entries never change."""

from collections import OrderedDict
from collections.abc import Sequence
from uuid import UUID

from billfold.ledger.customers import CustomerRow, Entry
from billfold.platform.database.connection import Db, Pool
from billfold.platform.database.pool import Batcher

DIRECTORY_CACHE_SIZE = 100_000

_Key = tuple[str, UUID | str]
"""A kind and a value to look up."""

# The names first: in a cluster they lie apart from their customers.
_ENTRIES = """
WITH d AS MATERIALIZED (
  SELECT k.nth - 1 AS nth, d.customer_id, d.object_id
    FROM unnest((SELECT $1::text[]), (SELECT $2::text[])) WITH ORDINALITY AS k(kind, value, nth)
    JOIN directory d USING (kind, value)
)
SELECT d.nth, d.customer_id, d.object_id, c.partner_id FROM d JOIN customer c USING (customer_id)
"""
_CUSTOMER = """
SELECT customer_id, partner_id, role, type, name, account_status, profile, opened_at, closed_at,
       closure_reason, agreement_version
  FROM customer WHERE customer_id = $1
"""


class Directory:
    """The directory of one process. Names not found are looked up again each time.

    Names that are not cached are looked up once for all concurrent callers.
    """

    def __init__(self, pool: Pool, *, cache_size: int = DIRECTORY_CACHE_SIZE) -> None:
        self._pool = pool
        self._cache_size = cache_size
        self._entries: OrderedDict[_Key, Entry] = OrderedDict()
        self._batcher: Batcher[_Key, Entry | None] = Batcher(self._fetch)

    async def find(self, kind: str, value: UUID | str) -> Entry | None:
        """Return the entry of a name, or None. Kinds: customer, pocket, transfer, ..."""
        key = (kind, value)
        cached = self._entries.get(key)
        if cached is not None:
            self._entries.move_to_end(key)
            return cached
        entry = await self._batcher.ask(key)
        if entry is None:
            return None
        self._entries[key] = entry
        if len(self._entries) > self._cache_size:
            self._entries.popitem(last=False)
        return entry

    async def _fetch(self, names: Sequence[_Key]) -> list[Entry | None]:
        entries: list[Entry | None] = [None] * len(names)
        kinds, values = [kind for kind, _ in names], [str(value) for _, value in names]
        for position, *entry in await self._pool.fetch(_ENTRIES, kinds, values):
            entries[position] = Entry(*entry)
        return entries


async def find_customer(conn: Db, customer_id: UUID) -> CustomerRow | None:
    """Return the current row of a customer, or None."""
    row = await conn.fetchrow(_CUSTOMER, customer_id)
    return None if row is None else CustomerRow(*row)
