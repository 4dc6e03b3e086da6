"""Reads of counterparties."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

import msgspec

from billfold.accounts.counterparties.types import CounterpartyRow, Payee
from billfold.platform.database.keyset import KeysetList
from billfold.platform.database.pool import uuid_array
from billfold.platform.errors import NotFound

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from asyncpg import Record

    from billfold.ledger.book.book import Book
    from billfold.platform.database.pool import Connection, Pool

_COLUMNS = """
SELECT customer_id, counterparty_id, type, status, counterparty_name, display_name,
       account_number, target_customer_id, target_pocket_id, verification, details, created_at,
       updated_at
  FROM counterparty
"""
_GET = f"{_COLUMNS} WHERE customer_id = $1 AND counterparty_id = $2"
_PAYEES = """
SELECT customer_id, counterparty_id, type, status, counterparty_name, verification, details,
       target_customer_id, target_pocket_id
  FROM counterparty
"""
_FIND_PAYEES = f"""{_PAYEES}
 WHERE customer_id = ANY((SELECT $1::text::uuid[])::uuid[])
   AND counterparty_id = ANY((SELECT $2::text::uuid[])::uuid[])
"""
_PAYEES_OF_CUSTOMERS = f"{_PAYEES} WHERE customer_id = ANY($1::uuid[])"
_AWAITING_REVIEW = f"""{_COLUMNS} c
 WHERE status = 'PENDING' AND verification->>'type' = 'supporting_documents'
   AND NOT EXISTS (SELECT 1 FROM document d
                    WHERE d.customer_id = c.customer_id
                      AND c.verification::jsonb->'document_ids' ? d.document_id::text
                      AND d.status IN ('PENDING_UPLOAD', 'INVALID'))
 ORDER BY created_at, counterparty_id LIMIT $1"""
COUNTERPARTIES = KeysetList(
    f"""{_COLUMNS}
 WHERE customer_id = $1
   AND ($2::text[] IS NULL OR type = ANY($2)) AND ($3::text[] IS NULL OR status = ANY($3)) AND {{page}}""",
    lambda row: CounterpartyRow(*row),
    created_at="timestamptz",
    counterparty_id="uuid",
)
"""Counterparties of a customer, of some types and statuses or of all, newest first."""

_decode = msgspec.json.Decoder().decode


async def get_counterparty(conn: Connection | Pool, customer_id: UUID, counterparty_id: UUID) -> CounterpartyRow:
    """The customer's counterparty. Raises NotFound."""
    row = await conn.fetchrow(_GET, customer_id, counterparty_id)
    if row is None:
        raise NotFound("There is no such counterparty.")
    return CounterpartyRow(*row)


def document_ids_of(row: CounterpartyRow) -> list[UUID]:
    """Return the ids of the documents that a counterparty's verification names."""
    return [UUID(each) for each in _decode(row.verification).get("document_ids", ())]


def payee_from_row(row: Record | CounterpartyRow) -> Payee:
    """Return a counterparty as flows see it, from a row of its table."""
    fields: Any = msgspec.structs.asdict(row) if isinstance(row, CounterpartyRow) else row
    return Payee(
        counterparty_id=fields["counterparty_id"],
        type=fields["type"],
        status=fields["status"],
        counterparty_name=_decode(fields["counterparty_name"]),
        verification=_decode(fields["verification"]),
        details=_decode(fields["details"]),
        target_customer_id=fields["target_customer_id"],
        target_pocket_id=fields["target_pocket_id"],
    )


async def list_awaiting_review(conn: Connection | Pool, limit: int) -> list[CounterpartyRow]:
    """Counterparties whose documents wait for their review, the oldest first."""
    return [CounterpartyRow(*row) for row in await conn.fetch(_AWAITING_REVIEW, limit)]


async def find_payees(
    conn: Connection | Pool, customer_ids: Sequence[UUID], ids: Sequence[UUID]
) -> list[tuple[UUID, UUID, Any]]:
    """Return those of these ids that are counterparties of these customers, as flows see them."""
    rows = await conn.fetch(_FIND_PAYEES, uuid_array(customer_ids), uuid_array(ids))
    return [(row["customer_id"], row["counterparty_id"], payee_from_row(row)) for row in rows]


async def load_payees(conn: Connection, books: Mapping[UUID, Book]) -> None:
    """Load the counterparties of these books, by customer."""
    for row in await conn.fetch(_PAYEES_OF_CUSTOMERS, list(books)):
        books[row["customer_id"]].counterparties[row["counterparty_id"]] = payee_from_row(row)
