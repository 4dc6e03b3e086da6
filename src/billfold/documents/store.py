"""Reads of documents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

from billfold.documents.types import DocumentRow
from billfold.platform.errors import NotFound

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from billfold.platform.database.pool import Connection, Pool

COLUMNS = """customer_id, document_id, type, status, exception_reason, name, media_type, file_key,
       size_bytes, sha256, created_at, uploaded_at"""
_BY_IDS = f"SELECT {COLUMNS} FROM document WHERE customer_id = $1 AND document_id = ANY($2::uuid[])"
_BY_ID = f"SELECT {COLUMNS} FROM document WHERE document_id = $1"
_LOOK_UP = f"""SELECT {COLUMNS} FROM document
 WHERE customer_id = ANY($1::uuid[]) AND document_id = ANY($2::uuid[])"""
_ORPHANED = """
SELECT key FROM unnest($1::text[]) AS key
 WHERE NOT EXISTS (SELECT 1 FROM document d WHERE d.file_key = key)
"""
_IN_REVIEW = f"""
SELECT {COLUMNS} FROM document d
 WHERE status = 'PENDING_REVIEW' AND NOT EXISTS (
   SELECT 1 FROM counterparty c
    WHERE c.customer_id = d.customer_id AND c.status = 'PENDING'
      AND c.verification::jsonb->'document_ids' ? d.document_id::text)
 ORDER BY uploaded_at, document_id LIMIT $1"""


async def get_document(conn: Connection | Pool, document_id: UUID, customer_id: UUID | None = None) -> DocumentRow:
    """Return a document, of this customer or of any. Raises NotFound."""
    row = await conn.fetchrow(_BY_ID, document_id)
    if row is None or (customer_id is not None and row["customer_id"] != customer_id):
        raise NotFound("There is no such document.")
    return DocumentRow(*row)


async def list_documents(
    conn: Connection | Pool, customer_id: UUID, document_ids: Iterable[UUID]
) -> dict[UUID, DocumentRow]:
    """Return those of these documents that are the customer's, by their ids."""
    rows = await conn.fetch(_BY_IDS, customer_id, list(document_ids))
    return {row["document_id"]: DocumentRow(*row) for row in rows}


async def list_awaiting_review(conn: Connection | Pool, limit: int) -> list[DocumentRow]:
    """Return documents that wait for their own review, oldest first.

    Those that belong to a counterparty which waits are reviewed with it.
    """
    return [DocumentRow(*row) for row in await conn.fetch(_IN_REVIEW, limit)]


async def find_referenced(
    conn: Connection, customer_ids: Sequence[UUID], ids: Sequence[UUID]
) -> list[tuple[UUID, UUID, Any]]:
    """Return those of these ids that are documents of these customers, for flows to see."""
    rows = await conn.fetch(_LOOK_UP, customer_ids, ids)
    return [(row["customer_id"], row["document_id"], DocumentRow(*row)) for row in rows]


async def find_orphaned_files(conn: Connection | Pool, keys: Sequence[str]) -> list[str]:
    """Return those of these names of files that no document has."""
    return [row["key"] for row in await conn.fetch(_ORPHANED, keys)]
