"""The rows of the log. They are read by tenant and time, and by trace."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

import msgspec
from asyncpg import DataError, IntegrityConstraintViolationError, Record

from billfold.platform.crypto import Vault, associated_data
from billfold.platform.database.connection import Pool
from billfold.platform.database.paging import KeysetList
from billfold.platform.errors import NotFound


class LoggedRequest(NamedTuple):
    """A row of the log, in the order of its columns."""

    id: UUID
    tenant_id: UUID
    requested_at: datetime
    trace_id: UUID
    """The id of the caller's trace, if it has one: several requests may share it."""
    method: str
    path: str
    operation: str
    status: int
    error_code: str | None
    fields: list[str]
    has_idempotency_key: bool
    is_replayed: bool
    client_id: str | None
    member_id: UUID | None
    user_id: UUID | None
    ip_address: str
    duration_ms: int
    idempotency_key: UUID | None = None
    refusal: bytes | None = None
    """Why it was refused, sealed; see `Refusal`."""


class RequestFilter(msgspec.Struct, frozen=True, kw_only=True):
    """A filter of a tenant's requests: None selects all."""

    tenant_id: UUID
    since: datetime | None = None
    until: datetime | None = None
    operation: str | None = None
    statuses: tuple[int, int] | None = None
    """The first status, and the one after the last."""
    error_code: str | None = None
    idempotency_key: UUID | None = None


class Refusal(msgspec.Struct, frozen=True, kw_only=True):
    """The reason of a refusal: the answer's text and figures, and the figures that it did not show."""

    detail: str
    facts: dict[str, Any]
    about: Mapping[str, Any] | None = None


class ErrorGroup(msgspec.Struct, frozen=True):
    """Errors of one operation with one code."""

    operation: str
    error_code: str
    count: int
    last: LoggedRequest


GROUPED_MAX = 10_000
"""Maximum number of the newest errors that are grouped."""
_COLUMNS = LoggedRequest._fields
_REFUSALS = (DataError, IntegrityConstraintViolationError)
"""Errors of a row, not of the database."""
_SELECTED = ", ".join(_COLUMNS)
_SPAN = """
 tenant_id = $1 AND requested_at >= coalesce($2::timestamptz, '-infinity')
   AND requested_at < coalesce($3::timestamptz, 'infinity')
"""
_LIST = f"SELECT {_SELECTED} FROM request_log WHERE {_SPAN} AND status >= $4 AND status < $5"
_GET = f"""
SELECT {_SELECTED} FROM request_log WHERE trace_id = $2 AND tenant_id = $1 ORDER BY requested_at DESC, id DESC LIMIT 1
"""
# Counted among the newest only, so that a log full of errors is read as fast as any other.
_GROUPS = f"""
WITH newest AS MATERIALIZED (
  SELECT requested_at, operation, error_code FROM request_log
   WHERE {_SPAN} AND status >= 400 ORDER BY requested_at DESC, id DESC LIMIT {GROUPED_MAX}
), counted AS (
  SELECT operation, error_code, count(*) AS count, max(requested_at) AS last_at FROM newest GROUP BY 1, 2
)
SELECT c.count, l.* FROM counted c CROSS JOIN LATERAL (
  SELECT {_SELECTED} FROM request_log r
   WHERE r.tenant_id = $1 AND r.requested_at = c.last_at AND r.status >= 400
     AND r.operation = c.operation AND r.error_code = c.error_code LIMIT 1
) l ORDER BY l.requested_at DESC, l.id
"""
_PURGE = """
DELETE FROM request_log WHERE ctid = ANY(ARRAY(SELECT ctid FROM request_log WHERE requested_at < $1 LIMIT $2))
"""


def _entry(row: Record) -> LoggedRequest:
    return LoggedRequest(*(row[name] for name in _COLUMNS))


_ORDER = {"requested_at": "timestamptz", "id": "uuid"}
# A statement for each set of filters: which index serves depends on them.
_ALL = KeysetList(_LIST + " AND {page}", _entry, **_ORDER)
_ERRORS = KeysetList(_LIST + " AND status >= 400 AND {page}", _entry, **_ORDER)
_OF_OPERATION = KeysetList(_LIST + " AND operation = $6 AND {page}", _entry, **_ORDER)
_OF_CODE = KeysetList(_LIST + " AND status >= 400 AND error_code = $6 AND {page}", _entry, **_ORDER)
_OF_BOTH = KeysetList(_LIST + " AND status >= 400 AND operation = $6 AND error_code = $7 AND {page}", _entry, **_ORDER)
_OF_KEY = KeysetList(
    _LIST + " AND idempotency_key = $6 AND ($7::text IS NULL OR operation = $7)"
    " AND ($8::text IS NULL OR error_code = $8) AND {page}",
    _entry,
    **_ORDER,
)
_STATUSES = (100, 600)
_FIRST_ERROR = 400


def filtered_list(wanted: RequestFilter) -> tuple[KeysetList[LoggedRequest], tuple[Any, ...]]:
    """Return the list of the requests of a filter, newest first, and the values it takes."""
    first, end = wanted.statuses or _STATUSES
    values: tuple[Any, ...] = wanted.tenant_id, wanted.since, wanted.until, first, end
    if wanted.idempotency_key is not None:
        return _OF_KEY, (*values, wanted.idempotency_key, wanted.operation, wanted.error_code)
    match wanted.operation, wanted.error_code:
        case None, None:
            return (_ERRORS if first >= _FIRST_ERROR else _ALL), values
        case operation, None:
            return _OF_OPERATION, (*values, operation)
        case None, code:
            return _OF_CODE, (*values, code)
        case operation, code:
            return _OF_BOTH, (*values, operation, code)


async def get_request(pool: Pool, tenant_id: UUID, trace_id: UUID) -> LoggedRequest:
    """Return one request of a tenant. Raises NotFound."""
    row = await pool.fetchrow(_GET, tenant_id, trace_id)
    if row is None:
        raise NotFound("There is no such request in the log.")
    return _entry(row)


def seal_refusal(vault: Vault, row_id: UUID, tenant_id: UUID, refusal: Refusal) -> bytes:
    """Return a refusal as a row keeps it."""
    return vault.seal(msgspec.json.encode(refusal), _place(row_id, tenant_id))


def refusal_of(vault: Vault, row: LoggedRequest) -> Refusal | None:
    """Return the refusal that a row keeps."""
    if row.refusal is None:
        return None
    return msgspec.json.decode(vault.open(row.refusal, _place(row.id, row.tenant_id)), type=Refusal)


def _place(row_id: UUID, tenant_id: UUID) -> bytes:
    return associated_data("request_log", "refusal", row_id, tenant_id=tenant_id)


async def list_error_groups(
    pool: Pool, tenant_id: UUID, *, since: datetime | None, until: datetime | None
) -> list[ErrorGroup]:
    """Return the newest errors of a tenant by operation and code, most recent first."""
    rows = await pool.fetch(_GROUPS, tenant_id, since, until)
    return [ErrorGroup(row["operation"], row["error_code"], row["count"], _entry(row)) for row in rows]


async def add_requests(pool: Pool, batch: Sequence[LoggedRequest]) -> int:
    """Write rows; return how many of them the database refuses: only these are lost.

    A crash of the database may lose the last of them, because writes do not wait for its disk.
    """
    if not batch:
        return 0
    try:
        async with pool.acquire() as conn, conn.transaction():
            await conn.execute("SET LOCAL synchronous_commit TO off")
            await conn.copy_records_to_table("request_log", records=batch, columns=_COLUMNS)
    except _REFUSALS:
        if len(batch) == 1:
            return 1
        middle = len(batch) // 2
        return await add_requests(pool, batch[:middle]) + await add_requests(pool, batch[middle:])
    return 0


async def purge_requests(pool: Pool, before: datetime, *, limit: int) -> int:
    """Remove rows that are older, `limit` at a time; return how many."""
    removed = last = int((await pool.execute(_PURGE, before, limit)).split()[-1])
    while last == limit:
        last = int((await pool.execute(_PURGE, before, limit)).split()[-1])
        removed += last
    return removed
