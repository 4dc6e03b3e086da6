"""Requests for reports as customers and partners read them. `now` is business time: what has expired is gone."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Final
from uuid import UUID

import msgspec

from billfold.platform.database.keyset import BY_CREATION, KeysetList
from billfold.platform.errors import NotFound
from billfold.reports.requests.types import ReportedFormat, ReportFormat, ReportRequest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asyncpg import Record

    from billfold.platform.database.connection import (Connection, Pool)

_NAMES = ReportRequest.__struct_fields__
_COLUMNS = ", ".join(_NAMES)
_ADD = f"""
INSERT INTO report_request ({_COLUMNS})
VALUES ({", ".join(f"${number}" for number in range(1, len(_NAMES) + 1))})
ON CONFLICT (customer_id, report_request_id) DO NOTHING RETURNING true
"""
_ADD_FORMATS = """
INSERT INTO report_format
  (customer_id, report_id, output_format, batch_id, tenant_id, status, progress, attempts, due_at)
SELECT $1, $2, unnest($3::text[]), $4, $5, 'PENDING', 0, 0, $6
ON CONFLICT (report_id, output_format) DO UPDATE
   SET batch_id = excluded.batch_id, status = 'PENDING', failure_reason = NULL, progress = 0, attempts = 0,
       due_at = excluded.due_at
 WHERE report_format.status = 'FAILED'
"""
_FIND = f"SELECT {_COLUMNS} FROM report_request WHERE report_request_id = $1 AND expires_at > $2"
_FIND_REPORT = f"""
SELECT {_COLUMNS} FROM report_request WHERE report_id = $1 AND expires_at > $2 AND status = 'COMPLETED'
"""
_FORMATS = """
SELECT f.report_id, f.output_format, f.status, f.failure_reason, f.progress, f.file_id, d.size_bytes
  FROM report_format f LEFT JOIN report_file d ON d.file_id = f.file_id
 WHERE f.report_id = ANY($1::uuid[]) ORDER BY f.report_id, f.output_format
"""
_UNFINISHED = "SELECT count(*) FROM report_format WHERE customer_id = $1 AND status IN ('PENDING', 'PROCESSING')"
_DELETE_FORMATS = """
WITH gone AS (SELECT report_id FROM report_request WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2)
DELETE FROM report_format f USING gone WHERE f.report_id = gone.report_id RETURNING f.file_id
"""
_DELETE_FILES = "DELETE FROM report_file WHERE file_id = ANY($1::uuid[])"
_DELETE_REQUESTS = """
DELETE FROM report_request WHERE report_request_id IN (
  SELECT report_request_id FROM report_request WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2)
RETURNING true
"""
PURGED_AT_ONCE: Final = 500


def _list_of(owner: str) -> KeysetList[ReportRequest]:
    return KeysetList(
        f"""
SELECT {_COLUMNS}, written_no FROM report_request
 WHERE {owner} AND expires_at > $3
   AND ($4::text[] IS NULL OR type = ANY($4)) AND ($5::text[] IS NULL OR status = ANY($5))
   AND ($6::timestamptz IS NULL OR created_at >= $6) AND ($7::timestamptz IS NULL OR created_at < $7)
   AND {{page}}
""",
        _request_of,
        **BY_CREATION,
    )


def _request_of(row: Record) -> ReportRequest:
    values = {name: row[name] for name in _NAMES}
    return msgspec.convert(values | {"parameters": msgspec.json.decode(row["parameters"])}, ReportRequest)


REQUESTS_OF_CUSTOMER = _list_of("customer_id = $1 AND $2::uuid IS NOT NULL")
REQUESTS_OF_PARTNER = _list_of("partner_id = $1 AND ($2::uuid IS NULL OR customer_id = $2)")
"""By (owner, customer_id, now, types, statuses, since, until); newest first."""


async def add_request(conn: Connection, request: ReportRequest) -> bool:
    """Write down a request; tell whether it was new."""
    parameters = msgspec.json.encode(request.parameters).decode()
    values = [parameters if name == "parameters" else getattr(request, name) for name in _NAMES]
    return await conn.fetchval(_ADD, *values) is True


async def add_formats(
    conn: Connection,
    request: ReportRequest,
    formats: Sequence[ReportFormat],
    *,
    batch_id: UUID,
    tenant_id: UUID,
    wall: datetime,
) -> int:
    """Let these formats be made, those too that failed before; return how many there are to make."""
    ids = (request.customer_id, request.report_id)
    done: str = await conn.execute(_ADD_FORMATS, *ids, list(formats), batch_id, tenant_id, wall)
    return int(done.rsplit(maxsplit=1)[-1])


async def get_request(conn: Connection | Pool, report_request_id: UUID, now: datetime) -> ReportRequest:
    """Return a request of anybody. Raises NotFound."""
    row = await conn.fetchrow(_FIND, report_request_id, now)
    if row is None:
        raise NotFound("There is no such report request.")
    return _request_of(row)


async def get_report(conn: Connection | Pool, report_id: UUID, now: datetime) -> ReportRequest:
    """Return the request of a report of anybody that is completed. Raises NotFound."""
    row = await conn.fetchrow(_FIND_REPORT, report_id, now)
    if row is None:
        raise NotFound("There is no such report.")
    return _request_of(row)


async def get_claimed(conn: Connection | Pool, report_id: UUID) -> ReportRequest:
    """Return the request of a report that is being made. Raises NotFound when it has expired."""
    row = await conn.fetchrow(f"SELECT {_COLUMNS} FROM report_request WHERE report_id = $1", report_id)
    if row is None:
        raise NotFound("There is no such report.")
    return _request_of(row)


async def list_formats(conn: Connection | Pool, report_ids: Sequence[UUID]) -> dict[UUID, list[ReportedFormat]]:
    """Return the formats of these reports."""
    found: dict[UUID, list[ReportedFormat]] = {each: [] for each in report_ids}
    for row in await conn.fetch(_FORMATS, report_ids):
        fields = dict(row)
        found[fields.pop("report_id")].append(msgspec.convert(fields, ReportedFormat))
    return found


async def count_unfinished(conn: Connection | Pool, customer_id: UUID) -> int:
    """Return how many formats of a customer wait or are made."""
    count: int = await conn.fetchval(_UNFINISHED, customer_id)
    return count


async def purge_expired(pool: Pool, now: datetime) -> int:
    """Remove reports that have expired, with the rows of their files; return how many."""
    removed = 0
    while True:
        async with pool.acquire() as conn, conn.transaction():
            files = [row["file_id"] for row in await conn.fetch(_DELETE_FORMATS, now, PURGED_AT_ONCE)]
            await conn.execute(_DELETE_FILES, [each for each in files if each is not None])
            last = len(await conn.fetch(_DELETE_REQUESTS, now, PURGED_AT_ONCE))
        removed += last
        if last < PURGED_AT_ONCE:
            return removed
