"""Documents on their way in. `at` is business time."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from billfold.documents.store import COLUMNS, get_document
from billfold.documents.types import DocumentRow
from billfold.platform.errors import Refused

if TYPE_CHECKING:
    from billfold.documents.ports import FileKind, StoredFile
    from billfold.platform.database.pool import Connection

_ADD = """
INSERT INTO document (customer_id, document_id, type, status, created_at)
VALUES ($1, $2, $3, 'PENDING_UPLOAD', $4) ON CONFLICT (document_id) DO NOTHING
"""
_PUT = f"""
UPDATE document
   SET status = $3, exception_reason = $4, name = $5, media_type = $6, file_key = $7,
       size_bytes = $8, sha256 = $9, uploaded_at = $10
 WHERE customer_id = $1 AND document_id = $2 AND status IN ('PENDING_UPLOAD', 'INVALID')
RETURNING {COLUMNS}
"""
_DECIDE = f"""
UPDATE document SET status = $2, exception_reason = $3
 WHERE document_id = $1 AND status = 'PENDING_REVIEW'
RETURNING {COLUMNS}
"""


async def request_document(conn: Connection, customer_id: UUID, document_id: UUID, type_: str, *, at: datetime) -> None:
    """Ask for a document: it waits for its file. One that is there already stays as it is."""
    await conn.execute(_ADD, customer_id, document_id, type_, at)


async def put_file(
    conn: Connection,
    document: DocumentRow,
    file: StoredFile,
    *,
    kind: FileKind,
    name: str | None,
    invalid: str | None,
    at: datetime,
) -> DocumentRow:
    """Give a document its file, for the review; `invalid` says why it is none.

    Refuses: already-approved, document-in-review.
    """
    row = await conn.fetchrow(
        _PUT,
        document.customer_id,
        document.document_id,
        "PENDING_REVIEW" if invalid is None else "INVALID",
        invalid,
        name,
        kind.value,
        file.key,
        file.size_bytes,
        file.sha256,
        at,
    )
    if row is not None:
        return DocumentRow(*row)
    found = await get_document(conn, document.document_id)
    if found.status == "APPROVED":
        raise Refused("already-approved", "The document is approved.")
    raise Refused("document-in-review", "The document has its file and waits for its review.")


async def record_review(conn: Connection, document_id: UUID, status: str, reason: str | None) -> DocumentRow:
    """Approve a document or find it invalid. Refuses: document-not-in-review."""
    row = await conn.fetchrow(_DECIDE, document_id, status, reason)
    if row is None:
        found = await get_document(conn, document_id)
        raise Refused("document-not-in-review", f"The document is {found.status}.")
    return DocumentRow(*row)
