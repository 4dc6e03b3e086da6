"""Rows of published agreements, which are insert-only."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from datetime import date, datetime
from uuid import UUID

import msgspec
import structlog
from asyncpg import Record

from billfold.ledger.types import Agreements, AgreementTerms
from billfold.onboarding.agreements.texts import AgreementText
from billfold.platform.database.connection import Connection, Db, Pool
from billfold.platform.database.rows import StructType, Table, proof_of
from billfold.platform.database.shortage import error_summary
from billfold.platform.errors import NotFound


class VersionRow(msgspec.Struct, frozen=True, kw_only=True):
    """A version. `customer_id` is the bank itself, whose audit log proves the row; `published_at` wall time."""

    customer_id: UUID
    version: str
    release_date: date
    required_by: date | None
    published_at: datetime


class DocumentRow(msgspec.Struct, frozen=True, kw_only=True):
    """One of its texts: `content` is JSON, `pdf` its file, both as published."""

    customer_id: UUID
    version: str
    type: str
    document_no: int
    title: str
    category: str
    content: str
    pdf: bytes


_LOCK = "SELECT 1 FROM bank FOR UPDATE"  # without the right to update, a table cannot be locked
_versions = Table(VersionRow, "agreement_version", key=("version",))
_documents = Table(DocumentRow, "agreement_document", key=("version", "type"))
_VERSIONS = f"{_versions.select} ORDER BY version DESC"
_TERMS = "SELECT version, required_by FROM agreement_version"
_DOCUMENTS = "SELECT content FROM agreement_document WHERE version = $1 ORDER BY document_no"
_PDF = "SELECT pdf FROM agreement_document WHERE version = $1 AND type = $2"
_UNACCEPTED = """
SELECT customer_id FROM membership m JOIN customer c USING (customer_id)
 WHERE m.user_id = $1 AND m.role = 'ADMIN' AND m.status = 'ACTIVE' AND c.role = 'customer'
   AND c.account_status <> 'CLOSED' AND coalesce(c.agreement_version, '') < $2
 ORDER BY c.name, customer_id LIMIT 1
"""
_ACCEPTANCES = """
SELECT version, accepted_at, accepted_by, accepted_by_id, ip_address, user_agent FROM agreement_acceptance
 WHERE customer_id = $1 ORDER BY recorded_at DESC, version DESC
"""


async def lock_versions(conn: Connection) -> None:
    """Block other publications until the transaction ends; existing versions can still be read."""
    await conn.execute(_LOCK)


async def list_versions(conn: Db) -> list[VersionRow]:
    """Return all versions, latest first."""
    return await _versions.all(conn, _VERSIONS)


async def load_terms(conn: Db) -> tuple[AgreementTerms, ...]:
    """Return the terms of each version."""
    return tuple(AgreementTerms(*row) for row in await conn.fetch(_TERMS))


async def list_documents(conn: Db, version: str) -> list[AgreementText]:
    """Return the texts of a version, in their order. Raises NotFound."""
    found = await find_documents(conn, version)
    if not found:
        raise NotFound("There are no such agreements.")
    return [*found.values()]


async def find_documents(conn: Db, version: str) -> dict[str, AgreementText]:
    """Return the texts of a version by type; empty if it was never published."""
    rows = await conn.fetch(_DOCUMENTS, version)
    return {text.type: text for row in rows for text in [msgspec.json.decode(row["content"], type=AgreementText)]}


async def find_unaccepted(conn: Db, user_id: UUID, version: str) -> UUID | None:
    """Return a company that has not accepted a version and has the user as administrator, or None."""
    found: UUID | None = await conn.fetchval(_UNACCEPTED, user_id, version)
    return found


async def get_pdf(conn: Db, version: str, kind: str) -> bytes:
    """Return the file of a text. Raises NotFound."""
    found: bytes | None = await conn.fetchval(_PDF, version, kind)
    if found is None:
        raise NotFound("There is no such agreement.")
    return found


async def add_version(conn: Connection, row: VersionRow, documents: Iterable[DocumentRow]) -> dict[str, dict[str, str]]:
    """Add a version with its texts; return the fingerprints of the rows for the audit log."""
    versions = {row.version: await _insert(conn, _versions, row)}
    texts = {f"{each.version}/{each.type}": await _insert(conn, _documents, each) for each in documents}
    return {"agreement_version": versions, "agreement_document": texts}


async def list_acceptances(conn: Db, customer_id: UUID) -> list[Record]:
    """Return the versions that a customer accepted, latest first."""
    return await conn.fetch(_ACCEPTANCES, customer_id)


async def _insert(conn: Connection, table: Table[StructType], row: StructType) -> str:
    written = await conn.fetchrow(f"{table.insertion} RETURNING *", *msgspec.structs.astuple(row))
    assert written is not None
    return proof_of(written, written.keys())


log = structlog.get_logger(__name__)

REFRESH_SECONDS = 2.0


@asynccontextmanager
async def run_agreements_refresher(pool: Pool, agreements: Agreements) -> AsyncIterator[None]:
    """Load the agreements, and refresh them as long as the context lasts."""
    await refresh(pool, agreements)
    task = asyncio.create_task(_refresh_periodically(pool, agreements))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def refresh(conn: Db, agreements: Agreements) -> None:
    """Load the versions."""
    agreements.published = await load_terms(conn)


async def _refresh_periodically(pool: Pool, agreements: Agreements) -> None:
    """Refresh until cancelled. An unavailable database is waited for."""
    while True:
        await asyncio.sleep(REFRESH_SECONDS)
        try:
            await refresh(pool, agreements)
        except Exception as error:  # noqa: BLE001 - keep the versions read before
            log.warning("agreements_refresh_failed", error=error_summary(error))
