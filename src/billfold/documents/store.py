"""Reads, requests and reviews documents, and stores their files. `at` is business time.

Files and their names are sealed with the data keys of the subjects they are about.
"""

import asyncio
from collections.abc import Iterable, Sequence
from datetime import datetime
from uuid import UUID

import msgspec

from billfold.data_keys.keys import DOCUMENT_NAME, DataKeys, DataShredded, open_column
from billfold.documents.ports import DocumentRow, FileStore, StoredFile, StoredFileMissing
from billfold.http.uploads import OwnedType
from billfold.ledger.bank import Bank
from billfold.platform.crypto import associated_data
from billfold.platform.database.connection import Connection, Db, Pool
from billfold.platform.database.rows import References, Table
from billfold.platform.errors import Refused
from billfold.platform.file_kinds import FileKind

_documents = Table(DocumentRow)
_BY_ID = f"{_documents.select} WHERE document_id = $1 AND ($2::uuid IS NULL OR customer_id = $2)"
_OF_APPLICATION = f"""{_documents.select}
 WHERE customer_id = ANY($1::uuid[]) AND application_id = ANY($2::uuid[]) ORDER BY created_at, type, document_id"""
_BY_IDS = f"{_documents.select} WHERE customer_id = ANY($1::uuid[]) AND document_id = ANY($2::uuid[])"
_ORPHANED = """
SELECT key FROM unnest($1::text[]) AS key
 WHERE NOT EXISTS (SELECT 1 FROM document d WHERE d.file_key = key)
"""
_IN_REVIEW = f"""
WITH d AS MATERIALIZED (
  {_documents.select} WHERE status = 'PENDING_REVIEW' AND application_id IS NULL AND type <> 'DISPUTE_EVIDENCE'
), c AS MATERIALIZED (
  SELECT customer_id, verification::jsonb->'document_ids' AS document_ids FROM counterparty
   WHERE status = 'PENDING' AND customer_id = ANY(ARRAY(SELECT customer_id FROM d)))
SELECT {_documents.columns()} FROM d
 WHERE NOT EXISTS (SELECT 1 FROM c WHERE c.customer_id = d.customer_id AND c.document_ids ? d.document_id::text)
 ORDER BY uploaded_at, document_id LIMIT $1"""
_ADD = """
INSERT INTO document
  (customer_id, document_id, type, status, created_at, application_id, related_party_id, subject_id)
VALUES ($1, $2, $3, 'PENDING_UPLOAD', $4, $5, $6, $7) ON CONFLICT (document_id) DO NOTHING
"""
_DROP = """
DELETE FROM document
 WHERE customer_id = $1 AND application_id = $2 AND status = 'PENDING_UPLOAD' AND document_id <> ALL($3::uuid[])
"""
_DECIDE_ALL = """
UPDATE document SET status = $3, exception_reason = $4
 WHERE customer_id = $1 AND document_id = ANY($2::uuid[]) AND status = 'PENDING_REVIEW'
"""
_PUT = f"""
UPDATE document
   SET status = $3, exception_reason = $4, name = $5, media_type = $6, file_key = $7,
       size_bytes = $8, sha256 = $9, uploaded_at = $10, file_sealed = true
 WHERE customer_id = $1 AND document_id = $2 AND status IN ('PENDING_UPLOAD', 'INVALID')
   AND NOT EXISTS (SELECT 1 FROM application a
                    WHERE a.customer_id = $1 AND a.application_id = document.application_id
                      AND a.status IN ('APPROVED', 'REJECTED', 'CLOSED'))
RETURNING {_documents.columns()}
"""
_DECIDE = f"""
UPDATE document SET status = $2, exception_reason = $3
 WHERE document_id = $1 AND status = 'PENDING_REVIEW'
RETURNING {_documents.columns()}
"""


async def find_type(pool: Pool, document_id: UUID) -> OwnedType | None:
    """Return the type of any customer's document, with its owner."""
    row = await pool.fetchrow("SELECT customer_id, type FROM document WHERE document_id = $1", document_id)
    return None if row is None else OwnedType(*row)


async def get_document(conn: Db, document_id: UUID, customer_id: UUID | None = None) -> DocumentRow:
    """Return a document, of this customer or of any. Raises NotFound."""
    return await _documents.one(conn, _BY_ID, document_id, customer_id)


async def list_documents(conn: Db, customer_id: UUID, document_ids: Iterable[UUID]) -> dict[UUID, DocumentRow]:
    """Return the given documents that belong to the customer, by id."""
    rows = await _documents.all(conn, _BY_IDS, [customer_id], list(document_ids))
    return {row.document_id: row for row in rows}


async def list_awaiting_review(conn: Db, limit: int) -> list[DocumentRow]:
    """Return documents that wait for their own review, oldest first.

    Documents of an application, of a counterparty under review, or of a dispute, are reviewed with it.
    """
    return await _documents.all(conn, _IN_REVIEW, limit)


async def find_referenced(conn: Connection, customer_ids: Sequence[UUID], ids: Sequence[UUID]) -> References:
    """Return the given ids that are documents of these customers, for flows."""
    rows = await _documents.all(conn, _BY_IDS, customer_ids, ids)
    return [(row.customer_id, row.document_id, row) for row in rows]


async def find_orphaned_files(conn: Db, keys: Sequence[str]) -> list[str]:
    """Return the given file names that no document uses."""
    return [row["key"] for row in await conn.fetch(_ORPHANED, keys)]


async def list_application_documents(
    conn: Db, customer_ids: Sequence[UUID], application_ids: Sequence[UUID]
) -> list[DocumentRow]:
    """Return the documents of applications of these owners and of their related parties, oldest first."""
    return await _documents.all(conn, _OF_APPLICATION, customer_ids, application_ids)


async def request_document(
    conn: Connection,
    customer_id: UUID,
    document_id: UUID,
    type_: str,
    *,
    at: datetime,
    application_id: UUID | None = None,
    related_party_id: UUID | None = None,
    subject_id: UUID | None = None,
) -> None:
    """Request a document, which then waits for its file. An existing one stays as it is.

    For a document of an application, store the application and the subject whose data key seals its file.
    """
    await conn.execute(_ADD, customer_id, document_id, type_, at, application_id, related_party_id, subject_id)


async def drop_requests(conn: Connection, customer_id: UUID, application_id: UUID, *, keep: Iterable[UUID]) -> None:
    """Ask no longer for other documents of an application; those that have a file stay."""
    await conn.execute(_DROP, customer_id, application_id, list(keep))


async def review_documents(
    conn: Connection, customer_id: UUID, document_ids: Iterable[UUID], *, status: str, reason: str | None
) -> None:
    """Approve or invalidate those of these documents that wait for a review."""
    await conn.execute(_DECIDE_ALL, customer_id, list(document_ids), status, reason)


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
    """Attach a sealed file to a document, for the review; `invalid` says why it is invalid.

    Refuses: already-approved, document-in-review, application-not-editable.
    """
    status = "PENDING_REVIEW" if invalid is None else "INVALID"
    stored = (kind.value, file.key, file.size_bytes, file.sha256)
    row = await _documents.first(
        conn, _PUT, document.customer_id, document.document_id, status, invalid, name, *stored, at
    )
    if row is not None:
        return row
    found = await get_document(conn, document.document_id)
    if found.status == "APPROVED":
        raise Refused("already-approved", "The document is approved.")
    if found.status in {"PENDING_UPLOAD", "INVALID"}:
        raise Refused("application-not-editable", "The application of the document is decided.")
    raise Refused("document-in-review", "The document has its file and waits for its review.")


async def record_review(conn: Connection, document_id: UUID, status: str, reason: str | None) -> DocumentRow:
    """Approve or invalidate a document. Refuses: document-not-in-review."""
    row = await _documents.first(conn, _DECIDE, document_id, status, reason)
    if row is None:
        found = await get_document(conn, document_id)
        raise Refused("document-not-in-review", f"The document is {found.status}.")
    return row


_BATCH_SIZE = 100


async def keep_sealed(bank: Bank, subject: UUID, document_id: UUID, content: bytes) -> StoredFile:
    """Store a document's file, sealed with a key; size and hash are those of the sealed file."""
    data_key = await bank.ports[DataKeys].of(bank.pool, subject)
    return await bank.ports[FileStore].keep(
        await asyncio.to_thread(data_key.seal, content, _place(subject, document_id))
    )


async def seal_name(bank: Bank, subject: UUID, document_id: UUID, name: str | None) -> str | None:
    """Return the name of a document's file, sealed."""
    return name and DOCUMENT_NAME.seal(await bank.ports[DataKeys].of(bank.pool, subject), document_id, name)


async def open_names(conn: Db, bank: Bank, rows: Sequence[DocumentRow]) -> list[DocumentRow]:
    """Return documents with their file names decrypted, None if one was destroyed with its key."""
    named = [(row.subject, row.document_id, row.name) for row in rows if row.name is not None]
    opened = iter(await open_column(bank.ports[DataKeys], conn, DOCUMENT_NAME, named))
    return [row if row.name is None else msgspec.structs.replace(row, name=next(opened)) for row in rows]


async def fetch_opened(bank: Bank, row: DocumentRow) -> bytes:
    """Return a document's file as it was sent. Raises StoredFileMissing, also if it was destroyed with its key."""
    if row.file is None:
        raise StoredFileMissing("the document has no file")
    content = await bank.ports[FileStore].fetch(row.file)
    if not row.file_sealed:
        return content
    try:
        return await bank.ports[DataKeys].open(
            bank.pool, row.subject, content, aad=_place(row.subject, row.document_id)
        )
    except DataShredded:
        raise StoredFileMissing("it was destroyed at the end of its retention") from None


def _place(subject: UUID, document_id: UUID) -> bytes:
    return associated_data("document", "file", document_id, tenant_id=subject)
