"""Formats of reports as workers claim, make and finish them.

A claim is a row that one worker holds until an instant of wall time; it is renewed while the format is made. Of a
worker that died it ends by itself, and the next one makes the format from its beginning. A tenant has its turn before
those that had one later, so nobody waits for another's thousand reports.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from billfold.reports.requests.types import FailureReason, ReportFormat, ReportRequestStatus

if TYPE_CHECKING:
    from billfold.platform.database.connection import (Connection, Pool)

# A row is locked while it is claimed, and looked at once more then: another worker may have been quicker.
_CLAIM = """
WITH turn AS (
  SELECT tenant_id, report_id, output_format
    FROM (SELECT DISTINCT ON (tenant_id) tenant_id, report_id, output_format, due_at FROM report_format w
           WHERE status IN ('PENDING', 'PROCESSING') AND due_at <= $1 AND coalesce(claimed_until, $1) <= $1
             AND NOT EXISTS (SELECT FROM report_format b
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
    """A format that one worker makes: whose, which, and how often it was begun."""

    customer_id: UUID
    report_id: UUID
    output_format: ReportFormat
    batch_id: UUID
    owner_id: UUID
    attempts: int


class Batch(NamedTuple):
    """Formats that were requested at once."""

    customer_id: UUID
    report_request_id: UUID
    report_id: UUID
    is_open: bool
    has_failed: bool


async def claim_format(conn: Connection | Pool, owner_id: UUID, *, wall: datetime, until: datetime) -> Claim | None:
    """Claim the format whose turn it is; None when there is none to make."""
    row = await conn.fetchrow(_CLAIM, wall, owner_id, until)
    return None if row is None else Claim(**{**row, "output_format": ReportFormat(row["output_format"])})


async def begin(conn: Connection | Pool, claim: Claim, now: datetime) -> None:
    """Note that a request is being worked on."""
    await conn.execute(_BEGIN, claim.report_id, now)


async def renew(conn: Connection | Pool, claim: Claim, *, until: datetime, progress: int) -> None:
    """Hold a claim longer; one that another worker has by now stays as it is."""
    await conn.execute(_RENEW, claim.report_id, claim.output_format, until, progress, claim.owner_id)


async def retry_later(conn: Connection | Pool, claim: Claim, due_at: datetime) -> None:
    """Let a format be made again from an instant on."""
    await conn.execute(_RETRY, claim.report_id, claim.output_format, claim.owner_id, due_at)


async def finish(
    conn: Connection, claim: Claim, *, file_id: UUID | None, failure: FailureReason | None, now: datetime
) -> ReportRequestStatus | None:
    """Finish a format; return what became of its batch when it was the last of it, in the caller's transaction.

    The request has the status of the formats that it asked for. Raises ClaimLost.
    """
    request = await conn.fetchrow(_LOCK, claim.report_id)
    status = ReportRequestStatus.FAILED if file_id is None else ReportRequestStatus.COMPLETED
    values = (claim.report_id, claim.output_format, claim.owner_id, status, file_id, failure)
    if request is None or await conn.fetchval(_FINISH, *values) is None:
        raise ClaimLost
    batch = await conn.fetchrow(_BATCH, claim.batch_id)
    if batch is None or batch["is_open"]:
        return None
    reason = batch["failure_reason"]
    outcome = ReportRequestStatus.COMPLETED if reason is None else ReportRequestStatus.FAILED
    if claim.batch_id == request["report_request_id"]:
        await conn.execute(_SETTLE, claim.report_id, outcome, reason, now)
    return outcome


async def find_batch(conn: Connection | Pool, batch_id: UUID) -> Batch | None:
    """Return formats that were requested at once; None when they have expired."""
    row = await conn.fetchrow(_FIND_BATCH, batch_id)
    return None if row is None else Batch(*row)


class ClaimLost(Exception):
    """Another worker has the claim by now, or the report has expired."""
