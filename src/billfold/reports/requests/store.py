"""Requests for reports as customers and partners read them, and the formats that workers claim, make and finish.

`now` is business time: expired requests are not found. A claim is a row that one worker holds until an instant of wall
time; it is renewed while the format is made. The claim of a crashed worker expires, and the next worker starts the
format over. Tenants take turns, so no tenant waits for all reports of another.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

import msgspec
from asyncpg import Record

from billfold.platform.database.connection import Connection, Db, Pool
from billfold.platform.database.paging import BY_CREATION, KeysetList
from billfold.platform.errors import NotFound
from billfold.reports.requests import types

_NAMES = types.ReportRequest.__struct_fields__
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


def _list_of(owner: str) -> KeysetList[types.ReportRequest]:
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


def _request_of(row: Record) -> types.ReportRequest:
    values = {name: row[name] for name in _NAMES}
    return msgspec.convert(values | {"parameters": msgspec.json.decode(row["parameters"])}, types.ReportRequest)


REQUESTS_OF_CUSTOMER = _list_of("customer_id = $1 AND $2::uuid IS NOT NULL")
REQUESTS_OF_PARTNER = _list_of("partner_id = $1 AND ($2::uuid IS NULL OR customer_id = $2)")
"""Parameters: (owner, customer_id, now, types, statuses, since, until); newest first."""


async def add_request(conn: Connection, request: types.ReportRequest) -> bool:
    """Insert a request; return whether it was new."""
    parameters = msgspec.json.encode(request.parameters).decode()
    values = [parameters if name == "parameters" else getattr(request, name) for name in _NAMES]
    return await conn.fetchval(_ADD, *values) is True


async def add_formats(
    conn: Connection,
    request: types.ReportRequest,
    formats: Sequence[types.ReportFormat],
    *,
    batch_id: UUID,
    tenant_id: UUID,
    wall: datetime,
) -> int:
    """Schedule these formats, including those that failed before; return how many are to be made."""
    ids = (request.customer_id, request.report_id)
    done: str = await conn.execute(_ADD_FORMATS, *ids, list(formats), batch_id, tenant_id, wall)
    return int(done.rsplit(maxsplit=1)[-1])


async def get_request(conn: Db, report_request_id: UUID, now: datetime) -> types.ReportRequest:
    """Return a request of any customer. Raises NotFound."""
    return await _get(conn, "report_request_id = $1 AND expires_at > $2", report_request_id, now)


async def get_report(conn: Db, report_id: UUID, now: datetime) -> types.ReportRequest:
    """Return the request of any customer's completed report. Raises NotFound."""
    completed = "report_id = $1 AND expires_at > $2 AND status = 'COMPLETED'"
    return await _get(conn, completed, report_id, now, noun="report")


async def get_claimed(conn: Db, report_id: UUID) -> types.ReportRequest:
    """Return the request of a report that is being made. Raises NotFound if it has expired."""
    return await _get(conn, "report_id = $1", report_id, noun="report")


async def _get(conn: Db, condition: str, *values: object, noun: str = "report request") -> types.ReportRequest:
    row = await conn.fetchrow(f"SELECT {_COLUMNS} FROM report_request WHERE {condition}", *values)
    if row is None:
        raise NotFound(f"There is no such {noun}.")
    return _request_of(row)


async def list_formats(conn: Db, report_ids: Sequence[UUID]) -> dict[UUID, list[types.ReportedFormat]]:
    """Return the formats of these reports."""
    found: dict[UUID, list[types.ReportedFormat]] = {each: [] for each in report_ids}
    for row in await conn.fetch(_FORMATS, report_ids):
        fields = dict(row)
        found[fields.pop("report_id")].append(msgspec.convert(fields, types.ReportedFormat))
    return found


async def count_unfinished(conn: Db, customer_id: UUID) -> int:
    """Return the number of a customer's formats that wait or are being made."""
    count: int = await conn.fetchval(_UNFINISHED, customer_id)
    return count


async def purge_expired(pool: Pool, now: datetime) -> int:
    """Delete expired reports, with the rows of their files; return how many."""
    removed = 0
    while True:
        async with pool.acquire() as conn, conn.transaction():
            files = [row["file_id"] for row in await conn.fetch(_DELETE_FORMATS, now, PURGED_AT_ONCE)]
            await conn.execute(_DELETE_FILES, [each for each in files if each is not None])
            last = len(await conn.fetch(_DELETE_REQUESTS, now, PURGED_AT_ONCE))
        removed += last
        if last < PURGED_AT_ONCE:
            return removed


# A claimed row is locked, and its condition is checked again then: another worker may have been quicker.
_CLAIM = """
WITH turn AS (
  SELECT tenant_id, report_id, output_format
    FROM (SELECT DISTINCT ON (tenant_id) tenant_id, report_id, output_format, due_at FROM report_format w
           WHERE status IN ('PENDING', 'PROCESSING') AND due_at <= $1 AND coalesce(claimed_until, $1) <= $1
             AND NOT EXISTS (SELECT 1 FROM report_format b
                              WHERE b.tenant_id = w.tenant_id AND b.status = 'PROCESSING' AND b.claimed_until > $1)
           ORDER BY tenant_id, due_at, report_id, output_format) first
   ORDER BY (SELECT max(started_at) FROM report_format s WHERE s.tenant_id = first.tenant_id) NULLS FIRST, due_at
   LIMIT 1
), free AS (
  SELECT f.report_id, f.output_format FROM report_format f JOIN turn USING (report_id, output_format)
   WHERE f.status IN ('PENDING', 'PROCESSING') AND coalesce(f.claimed_until, $1) <= $1
     FOR UPDATE OF f SKIP LOCKED
)
UPDATE report_format f
   SET status = 'PROCESSING', owner_id = $2, claimed_until = $3, started_at = $1, attempts = attempts + 1, progress = 0
  FROM free WHERE f.report_id = free.report_id AND f.output_format = free.output_format
RETURNING f.customer_id, f.report_id, f.output_format, f.batch_id, f.owner_id, f.attempts
"""
_BEGIN = """
UPDATE report_request SET status = 'PROCESSING', updated_at = greatest(updated_at, $2)
 WHERE report_id = $1 AND status = 'PENDING'
"""
_RENEW = """
UPDATE report_format SET claimed_until = $3, progress = $4
 WHERE report_id = $1 AND output_format = $2 AND owner_id = $5
"""
_RETRY = """
UPDATE report_format SET status = 'PENDING', owner_id = NULL, claimed_until = NULL, due_at = $4
 WHERE report_id = $1 AND output_format = $2 AND owner_id = $3
"""
_LOCK = "SELECT report_request_id, status FROM report_request WHERE report_id = $1 FOR UPDATE"
_FINISH = """
UPDATE report_format
   SET status = $4, file_id = $5, failure_reason = $6, progress = CASE WHEN $5::uuid IS NULL THEN progress ELSE 100 END,
       owner_id = NULL, claimed_until = NULL
 WHERE report_id = $1 AND output_format = $2 AND owner_id = $3 RETURNING true
"""
_BATCH = """
SELECT bool_or(status IN ('PENDING', 'PROCESSING')) AS is_open, min(failure_reason) AS failure_reason
  FROM report_format WHERE batch_id = $1
"""
_SETTLE = """
UPDATE report_request SET status = $2, failure_reason = $3, updated_at = greatest(updated_at, $4) WHERE report_id = $1
"""
_FIND_BATCH = """
SELECT r.customer_id, r.report_request_id, r.report_id, bool_or(f.status IN ('PENDING', 'PROCESSING')) AS is_open,
       bool_or(f.status = 'FAILED') AS has_failed
  FROM report_format f JOIN report_request r USING (report_id) WHERE f.batch_id = $1 GROUP BY 1, 2, 3
"""


class Claim(NamedTuple):
    """A format claimed by a worker: its owner, its name, and how often it was started."""

    customer_id: UUID
    report_id: UUID
    output_format: types.ReportFormat
    batch_id: UUID
    owner_id: UUID
    attempts: int


class Batch(NamedTuple):
    """Formats that were requested together."""

    customer_id: UUID
    report_request_id: UUID
    report_id: UUID
    is_open: bool
    has_failed: bool


async def claim_format(conn: Db, owner_id: UUID, *, wall: datetime, until: datetime) -> Claim | None:
    """Claim the next format in turn; None if there is none to make."""
    row = await conn.fetchrow(_CLAIM, wall, owner_id, until)
    return None if row is None else Claim(**{**row, "output_format": types.ReportFormat(row["output_format"])})


async def begin(conn: Db, claim: Claim, now: datetime) -> None:
    """Record that work on a request has begun."""
    await conn.execute(_BEGIN, claim.report_id, now)


async def renew(conn: Db, claim: Claim, *, until: datetime, progress: int) -> None:
    """Extend a claim; one that another worker has taken over is not changed."""
    await conn.execute(_RENEW, claim.report_id, claim.output_format, until, progress, claim.owner_id)


async def retry_later(conn: Db, claim: Claim, due_at: datetime) -> None:
    """Schedule another attempt at a format."""
    await conn.execute(_RETRY, claim.report_id, claim.output_format, claim.owner_id, due_at)


async def finish(
    conn: Connection, claim: Claim, *, file_id: UUID | None, failure: types.FailureReason | None, now: datetime
) -> types.ReportRequestStatus | None:
    """Finish a format; return the outcome of its batch if it was the last one, in the caller's transaction.

    The request's status follows the formats that it asked for. Raises ClaimLost.
    """
    request = await conn.fetchrow(_LOCK, claim.report_id)
    status = types.ReportRequestStatus.FAILED if file_id is None else types.ReportRequestStatus.COMPLETED
    values = (claim.report_id, claim.output_format, claim.owner_id, status, file_id, failure)
    if request is None or await conn.fetchval(_FINISH, *values) is None:
        raise ClaimLost
    batch = await conn.fetchrow(_BATCH, claim.batch_id)
    if batch is None or batch["is_open"]:
        return None
    reason = batch["failure_reason"]
    outcome = types.ReportRequestStatus.COMPLETED if reason is None else types.ReportRequestStatus.FAILED
    if claim.batch_id == request["report_request_id"]:
        await conn.execute(_SETTLE, claim.report_id, outcome, reason, now)
    return outcome


async def find_batch(conn: Db, batch_id: UUID) -> Batch | None:
    """Return formats that were requested together; None if they have expired."""
    row = await conn.fetchrow(_FIND_BATCH, batch_id)
    return None if row is None else Batch(*row)


class ClaimLost(Exception):
    """Another worker has taken over the claim, or the report has expired."""
