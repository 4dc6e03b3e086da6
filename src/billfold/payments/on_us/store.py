"""Queries of on-us transfers."""

from collections.abc import Collection, Mapping
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

_SELECT = f"""
WITH t AS MATERIALIZED (
  SELECT {Table(OnUsTransferRow).columns()} FROM transfer WHERE {{condition}}
), d AS MATERIALIZED (
  SELECT value, customer_id FROM directory
   WHERE kind = 'pocket' AND value = ANY(ARRAY(SELECT to_pocket_id::text FROM t)))
SELECT t.*, d.customer_id AS payee_id FROM t LEFT JOIN d ON d.value = t.to_pocket_id::text
"""
_OLDEST = "status = 'PENDING' AND transfer_id <> ALL($2::uuid[]) ORDER BY created_at, transfer_id LIMIT $1"
_GET = _SELECT.format(condition="customer_id = $1 AND transfer_id = $2")
_PENDING = f"{_SELECT.format(condition=_OLDEST)} ORDER BY created_at, transfer_id"
_BY_IDS = f"""{
    _SELECT.format(
        condition="(customer_id, transfer_id) IN "
        "(SELECT customer_id, object_id FROM directory WHERE kind = 'transfer' AND value = ANY($1::uuid[]::text[]))"
    )
}"""
# They are transfers of its payee.
_REVERSALS = """
SELECT reverses_id, transfer_id, amount FROM transfer
 WHERE reverses_id = ANY($1::uuid[]) AND status = 'COMPLETED' ORDER BY created_at, transfer_id
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


async def find_transfer(conn: Db, customer_id: UUID, transfer_id: UUID) -> TransferRow | None:
    """Return the customer's transfer, or None."""
    row = await conn.fetchrow(_GET, customer_id, transfer_id)
    return None if row is None else _read(row)


async def get_transfer(conn: Db, customer_id: UUID, transfer_id: UUID) -> TransferRow:
    """Return the customer's transfer. Raises NotFound."""
    found = await find_transfer(conn, customer_id, transfer_id)
    if found is None:
        raise NotFound("There is no such transfer.")
    return found


async def list_reversals(conn: Db, ids: Collection[UUID]) -> dict[UUID, list[Reversal]]:
    """Return what has been paid back of transfers, by their ids, oldest first."""
    found: dict[UUID, list[Reversal]] = {}
    for original_id, *reversal in await conn.fetch(_REVERSALS, list(ids)) if ids else ():
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


_STORED = Table(OnUsTransferRow)
TRANSFERS = BoundedList(
    f"""SELECT {_STORED.columns("t")}, NULL::uuid AS payee_id
  FROM (SELECT *, (request->>'counterparty_id')::uuid AS counterparty_id FROM transfer) t
 WHERE t.customer_id = $1 AND ($2::uuid IS NULL OR $2 IN (t.from_pocket_id, t.to_pocket_id))
   AND ($3::text[] IS NULL OR t.status = ANY($3)) AND ($4::text[] IS NULL OR t.type = ANY($4))
   AND {payment_filters("t", "transfer_id", 5)} AND {{page}}""",
    _read,
    Along(f"transfer WHERE customer_id = $1 AND {created_between(2)}", places=(0, 4, 5)),
    created_at="timestamptz",
    transfer_id="uuid",
)
"""The transfers that a customer pays, by Pocket, statuses, types and `payment_filters`; None does not filter."""
