"""Reads the log of a customer. Each page is one statement by index, however long the history; one of some types of
resources reads entries until the page is full."""

from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

import msgspec
from asyncpg import Record

from billfold.audit.rules import AuditEntry, EntryFilter, open_details
from billfold.platform.crypto import Vault
from billfold.platform.database.connection import Connection, Db
from billfold.platform.database.paging import KeysetList, Place

ENTRY_COLUMNS = ", ".join(AuditEntry.__struct_fields__)
_PREFETCH = 1_000
_FILTERED = f"""
SELECT {ENTRY_COLUMNS} FROM audit_entry
 WHERE customer_id = $1 AND recorded_at >= coalesce($2::timestamptz, '-infinity')
   AND recorded_at < coalesce($3::timestamptz, 'infinity')
   AND ($4::text[] IS NULL OR resource_type = ANY($4))
"""


def _entry(row: Record) -> AuditEntry:
    return msgspec.convert(dict(row), AuditEntry)


_ORDER = {"recorded_at": "timestamptz", "entry_no": "bigint"}
# Two statements: which index serves depends on whether there is a member.
_OF_ALL = KeysetList(_FILTERED + " AND {page}", _entry, **_ORDER)
_OF_MEMBER = KeysetList(_FILTERED + " AND member_id = $5 AND {page}", _entry, **_ORDER)


def filtered_list(entry_filter: EntryFilter) -> tuple[KeysetList[AuditEntry], tuple[Any, ...]]:
    """Return the list of the entries of a filter, newest first, and the values it takes."""
    values = entry_filter.customer_id, entry_filter.since, entry_filter.until, entry_filter.resource_types
    if entry_filter.member_id is None:
        return _OF_ALL, values
    return _OF_MEMBER, (*values, entry_filter.member_id)


async def list_entries(
    conn: Db,
    entry_filter: EntryFilter,
    place: Place | None = None,
    *,
    descending: bool = True,
    limit: int,
) -> list[AuditEntry]:
    """Return up to `limit` entries on from a place, newest first unless not `descending`."""
    listed, values = filtered_list(entry_filter)
    return await listed.rows(conn, *values, after=place, descending=descending, limit=limit)


_ABOUT = f"""
SELECT {ENTRY_COLUMNS} FROM audit_entry WHERE customer_id = $1 AND resource_id = $2 AND outcome = 'SUCCESS'
 ORDER BY entry_no DESC LIMIT $3
"""


async def list_entries_about(conn: Db, customer_id: UUID, object_id: UUID, limit: int) -> list[AuditEntry]:
    """Return the newest successful actions on a thing of a customer, newest first."""
    return [_entry(row) for row in await conn.fetch(_ABOUT, customer_id, str(object_id), limit)]


async def iterate_all_entries(conn: Connection, *, timeout_seconds: float) -> AsyncIterator[AuditEntry]:
    """Yield the entries of all customers, each customer's in their order; in a transaction."""
    statement = f"SELECT {ENTRY_COLUMNS} FROM audit_entry ORDER BY customer_id, entry_no"
    async for row in conn.cursor(statement, prefetch=_PREFETCH, timeout=timeout_seconds):
        yield _entry(row)


class CustomerAuditLogEntry(msgspec.Struct, kw_only=True):
    """An action. `member_id` is null if the actor was not a member of the team.

    `actor_type` then tells the actor: a client acting for itself, the partner, or the operator of the
    bank. `client_id` is the OAuth client of the request.
    """

    id: UUID
    timestamp: datetime
    member_id: UUID | None
    member_name: str
    action: str
    resource_type: str
    resource_id: str | None
    outcome: Literal["SUCCESS", "FAILURE"]
    ip_address: str | None
    user_agent: str | None
    details: dict[str, Any]
    actor_type: Literal["MEMBER", "CLIENT", "PARTNER", "OPERATOR", "SYSTEM", "INVITED"]
    client_id: str | None
    object_type: Literal["CustomerAuditLogEntry"] = "CustomerAuditLogEntry"


COLUMNS = tuple(name for name in CustomerAuditLogEntry.__struct_fields__ if name != "object_type")
"""The same fields flattened, for files; `details` as JSON."""


def render_entry(vault: Vault, row: AuditEntry) -> CustomerAuditLogEntry:
    """Return an entry as the API shows it."""
    return CustomerAuditLogEntry(
        id=row.entry_id,
        timestamp=row.recorded_at,
        member_id=row.member_id,
        member_name=row.actor_name,
        action=row.action,
        resource_type=row.resource_type,
        resource_id=row.resource_id,
        outcome=row.outcome,
        ip_address=row.ip_address,
        user_agent=row.user_agent,
        details=open_details(row, vault),
        actor_type=row.actor,
        client_id=row.client_id,
    )


def cells_of(vault: Vault, row: AuditEntry) -> tuple[object, ...]:
    """Return an entry as a line of a file."""
    shown = render_entry(vault, row)
    details = msgspec.json.encode(shown.details).decode()
    return tuple(details if name == "details" else getattr(shown, name) for name in COLUMNS)
