"""Looks up the directory and caches it: entries never change."""

from collections import OrderedDict
from collections.abc import Sequence
from uuid import UUID

from billfold.ledger.customers import CustomerRow, Entry
from billfold.platform.database.connection import Connection, Pool
from billfold.platform.database.distribution import is_distributed
from billfold.platform.database.pool import Batcher

DIRECTORY_CACHE_SIZE = 100_000

_Key = tuple[str, UUID | str]
"""A kind and a value to look up."""

# One index look-up per name, however much the tables have grown since this was planned. Sub-selects keep
# the plan independent of the names, so it is made once, and not for each batch.
_ENTRIES = """
SELECT k.nth - 1, d.customer_id, d.object_id, d.partner_id
  FROM unnest((SELECT $1::text[]), (SELECT $2::text[])) WITH ORDINALITY AS k(kind, value, nth)
 CROSS JOIN LATERAL (
       SELECT d.customer_id, d.object_id, c.partner_id
         FROM directory d JOIN customer c USING (customer_id)
        WHERE d.kind = k.kind AND d.value = k.value LIMIT 1) d
"""
# Names and customers lie on different nodes of a cluster: one query each, to the shards of the values.
_ENTRIES_BY_SHARD = """
SELECT kind, value, customer_id, object_id FROM directory d
  JOIN unnest($1::text[], $2::text[]) AS k(kind, value) USING (kind, value) WHERE d.value = ANY($2)
"""
_PARTNERS_BY_SHARD = "SELECT customer_id, partner_id FROM customer WHERE customer_id = ANY($1)"
_CUSTOMER = """
SELECT customer_id, partner_id, role, type, name, account_status, profile, opened_at, closed_at,
       closure_reason, agreement_version
  FROM customer WHERE customer_id = $1
"""


class Directory:
    """The directory of one process. Names not found are looked up again each time.

    Names that are not cached are looked up once for all concurrent callers.
    """

    __slots__ = ("_batcher", "_cache_size", "_entries", "_is_distributed", "_pool")

    def __init__(self, pool: Pool, *, cache_size: int = DIRECTORY_CACHE_SIZE) -> None:
        self._pool = pool
        self._cache_size = cache_size
        self._is_distributed: bool | None = None
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
        if self._is_distributed is None:
            self._is_distributed = await is_distributed(self._pool)
        if self._is_distributed:
            return await self._fetch_by_shard(kinds, values)
        for position, *entry in await self._pool.fetch(_ENTRIES, kinds, values):
            entries[position] = Entry(*entry)
        return entries

    async def _fetch_by_shard(self, kinds: list[str], values: list[str]) -> list[Entry | None]:
        rows = await self._pool.fetch(_ENTRIES_BY_SHARD, kinds, values)
        owners = {row["customer_id"] for row in rows}
        rows_of_owners = await self._pool.fetch(_PARTNERS_BY_SHARD, list(owners))
        partners = {row["customer_id"]: row["partner_id"] for row in rows_of_owners}
        found = {
            (row["kind"], row["value"]): Entry(row["customer_id"], row["object_id"], partners[row["customer_id"]])
            for row in rows
            if row["customer_id"] in partners
        }
        return [found.get(key) for key in zip(kinds, values, strict=True)]


async def find_customer(conn: Connection | Pool, customer_id: UUID) -> CustomerRow | None:
    """Return the current row of a customer, or None."""
    row = await conn.fetchrow(_CUSTOMER, customer_id)
    return None if row is None else CustomerRow(*row)
