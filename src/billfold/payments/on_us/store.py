"""Queries of on-us transfers."""

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

import msgspec
from asyncpg import Record

from billfold.accounts.notes.store import created_between, payment_filters
from billfold.ledger.book.book import Book
from billfold.payments.on_us.commands import OnUsTransferRow, PendingTransfer, TransferOrder, TransferRow
from billfold.platform.database.connection import Connection, Db
from billfold.platform.database.paging import Along, BoundedList
from billfold.platform.database.rows import Table
from billfold.platform.errors import NotFound

_SELECT = """
WITH t AS MATERIALIZED (
  {stored} {condition}
), d AS MATERIALIZED (
  SELECT value, customer_id FROM directory
   WHERE kind = 'pocket' AND value = ANY(ARRAY(SELECT to_pocket_id::text FROM t)))
SELECT t.*, d.customer_id AS payee_id FROM t LEFT JOIN d ON d.value = t.to_pocket_id::text
"""
_OLDEST = "status = 'PENDING' AND transfer_id <> ALL($2::uuid[]) ORDER BY created_at, transfer_id LIMIT $1"
_STORED = Table(OnUsTransferRow)
_NOW = f"{_STORED.select} WHERE"
_KEY = "customer_id = $1 AND transfer_id = $2"
_GET = _SELECT.format(stored=_NOW, condition=_KEY)
_GET_THEN = _SELECT.format(stored=f"{_STORED.select_as_of('$3', of=('$1', '$2'))} AND", condition=_KEY)
_PENDING = f"{_SELECT.format(stored=_NOW, condition=_OLDEST)} ORDER BY created_at, transfer_id"
_BY_IDS = f"""{
    _SELECT.format(
        stored=_NOW,
        condition="(customer_id, transfer_id) IN "
        "(SELECT customer_id, object_id FROM directory WHERE kind = 'transfer' AND value = ANY($1::uuid[]::text[]))",
    )
}"""
# They are transfers of its payee.
_REVERSALS = """
SELECT reverses_id, transfer_id, amount FROM transfer
 WHERE reverses_id = ANY($1::uuid[]) AND status = 'COMPLETED'
   AND created_at <= coalesce($2::timestamptz, 'infinity') ORDER BY created_at, transfer_id
"""
# Two tables in one query: it runs whenever the book of a payer is loaded.
_PENDING_OF_CUSTOMERS = """
SELECT customer_id, transfer_id, from_pocket_id, to_pocket_id FROM transfer
 WHERE status = 'PENDING' AND customer_id = ANY($1::uuid[])
UNION ALL
SELECT customer_id, transfer_id, pocket_id, NULL FROM security_transfer
 WHERE status = 'PENDING' AND customer_id = ANY($1::uuid[])
"""


class Reversal(NamedTuple):
    """A transfer that pays another back."""

    transfer_id: UUID
    amount: int


async def find_transfer(
    conn: Db, customer_id: UUID, transfer_id: UUID, as_of: datetime | None = None
) -> TransferRow | None:
    """Return the customer's transfer, as it is or was, or None."""
    sql, then = (_GET, ()) if as_of is None else (_GET_THEN, (as_of,))
    row = await conn.fetchrow(sql, customer_id, transfer_id, *then)
    return None if row is None else _read(row)


async def get_transfer(conn: Db, customer_id: UUID, transfer_id: UUID, as_of: datetime | None = None) -> TransferRow:
    """Return the customer's transfer, as it is or was. Raises NotFound."""
    found = await find_transfer(conn, customer_id, transfer_id, as_of)
    if found is None:
        raise NotFound("There is no such transfer.")
    return found


async def list_reversals(conn: Db, ids: Collection[UUID], as_of: datetime | None = None) -> dict[UUID, list[Reversal]]:
    """Return what has been paid back of transfers, or had been, by their ids, oldest first."""
    found: dict[UUID, list[Reversal]] = {}
    for original_id, *reversal in await conn.fetch(_REVERSALS, list(ids), as_of) if ids else ():
        found.setdefault(original_id, []).append(Reversal(*reversal))
    return found


async def find_by_ids(conn: Db, ids: Collection[UUID]) -> dict[UUID, TransferRow]:
    """Return transfers of any customers by their ids."""
    return {row.transfer_id: row for row in map(_read, await conn.fetch(_BY_IDS, list(ids)))} if ids else {}


async def list_pending(conn: Db, *, limit: int = 100, except_for: Collection[UUID] = ()) -> list[TransferRow]:
    """Return recorded transfers that are not executed yet, oldest first."""
    return [_read(row) for row in await conn.fetch(_PENDING, limit, list(except_for))]


async def load_pending(conn: Connection, books: Mapping[UUID, Book]) -> None:
    """Load the pending transfers of these books, by customer, including custody transfers."""
    for row in await conn.fetch(_PENDING_OF_CUSTOMERS, list(books)):
        customer_id, transfer_id, *pockets = row
        books[customer_id].pending[transfer_id] = PendingTransfer(*pockets)


def _read(row: Record) -> TransferRow:
    return msgspec.convert(dict(row) | {"order": msgspec.json.decode(row["request"], type=TransferOrder)}, TransferRow)


_COUNTERPARTY = "(transfer.request->>'counterparty_id')::uuid AS counterparty_id"
TRANSFERS, TRANSFERS_THEN = (
    BoundedList(
        f"""SELECT t.*, NULL::uuid AS payee_id
  FROM ({selected} transfer.customer_id = $1) t
 WHERE ($2::uuid IS NULL OR $2 IN (t.from_pocket_id, t.to_pocket_id))
   AND ($3::text[] IS NULL OR t.status = ANY($3)) AND ($4::text[] IS NULL OR t.type = ANY($4))
   AND {payment_filters("t", "transfer_id", 5)} AND {{page}}""",
        _read,
        Along(f"transfer WHERE customer_id = $1 AND {created_between(2)}{until}", places=(0, 4, 5, *places)),
        created_at="timestamptz",
        transfer_id="uuid",
    )
    for selected, until, *places in (
        (f"SELECT {_STORED.columns()}, {_COUNTERPARTY} FROM transfer WHERE", ""),
        (f"{_STORED.select_as_of('$11', _COUNTERPARTY)} AND", " AND created_at <= $4", 10),
    )
)
"""The transfers that a customer pays, by Pocket, statuses, types and `payment_filters`; None does not filter."""
