"""Rows of published agreements: added, and never changed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any
from uuid import UUID

import msgspec

from billfold.ledger.types import AgreementTerms
from billfold.onboarding.agreements.texts import AgreementText
from billfold.onboarding.agreements.types import DocumentRow, VersionRow
from billfold.platform.database.rows import proof_of
from billfold.platform.errors import NotFound

if TYPE_CHECKING:
    from asyncpg import Record

    from billfold.platform.database.connection import (Connection, Pool)

_LOCK = "SELECT FROM bank FOR UPDATE"  # rows that are only added leave no right to lock their table
_VERSIONS = f"SELECT {', '.join(VersionRow.__struct_fields__)} FROM agreement_version ORDER BY version DESC"
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
    """Let nobody else publish until the transaction ends; what is there can be read."""
    await conn.execute(_LOCK)


async def list_versions(conn: Connection | Pool) -> list[VersionRow]:
    """Return all versions, the last one first."""
    return [VersionRow(**dict(row)) for row in await conn.fetch(_VERSIONS)]


async def load_terms(conn: Connection | Pool) -> tuple[AgreementTerms, ...]:
    """Return what decides about each version."""
    return tuple(AgreementTerms(*row) for row in await conn.fetch(_TERMS))


async def list_documents(conn: Connection | Pool, version: str) -> list[AgreementText]:
    """Return the texts of a version, in their order. Raises NotFound."""
    found = await find_documents(conn, version)
    if not found:
        raise NotFound("There are no such agreements.")
    return [*found.values()]


async def find_documents(conn: Connection | Pool, version: str) -> dict[str, AgreementText]:
    """Return the texts of a version by their types; empty when it was never published."""
    rows = await conn.fetch(_DOCUMENTS, version)
    return {text.type: text for row in rows for text in [msgspec.json.decode(row["content"], type=AgreementText)]}


async def find_unaccepted(conn: Connection | Pool, user_id: UUID, version: str) -> UUID | None:
    """Return a company that has not accepted a version, and of which the user is an administrator; or None."""
    found: UUID | None = await conn.fetchval(_UNACCEPTED, user_id, version)
    return found


async def get_pdf(conn: Connection | Pool, version: str, kind: str) -> bytes:
    """Return the file of a text. Raises NotFound."""
    found: bytes | None = await conn.fetchval(_PDF, version, kind)
    if found is None:
        raise NotFound("There is no such agreement.")
    return found


async def add_version(conn: Connection, row: VersionRow, documents: Iterable[DocumentRow]) -> dict[str, dict[str, str]]:
    """Add a version with its texts; return the fingerprints of the rows, as the audit log keeps them."""
    versions = {row.version: proof_of(*await _insert(conn, "agreement_version", row))}
    texts = {
        f"{each.version}/{each.type}": proof_of(*await _insert(conn, "agreement_document", each)) for each in documents
    }
    return {"agreement_version": versions, "agreement_document": texts}


async def list_acceptances(conn: Connection | Pool, customer_id: UUID) -> list[Record]:
    """Return which versions a customer accepted, the last one first."""
    return await conn.fetch(_ACCEPTANCES, customer_id)


async def _insert(conn: Connection, table: str, row: msgspec.Struct) -> tuple[Any, list[str]]:
    names = row.__struct_fields__
    parameters = ", ".join(f"${number}" for number in range(1, len(names) + 1))
    sql = f"INSERT INTO {table} ({', '.join(names)}) VALUES ({parameters}) RETURNING *"
    written = await conn.fetchrow(sql, *msgspec.structs.astuple(row))
    assert written is not None
    return written, list(written.keys())
