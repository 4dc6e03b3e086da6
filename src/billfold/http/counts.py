"""Counts of requests in the database: rate limits besides those of admission, and calls of deprecated operations."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from email.utils import format_datetime
from uuid import UUID

import structlog

from billfold.http.admission import WINDOW_SECONDS, Admission, rate_limit_headers
from billfold.http.edge import clock_header
from billfold.http.operations import Operation
from billfold.http.raw_request import RawRequest
from billfold.http.responses import Headers, HttpResponse, ProblemWithHeaders, response_to
from billfold.platform.addresses import network_of
from billfold.platform.database.connection import Db, Pool
from billfold.platform.database.pool import Batcher
from billfold.platform.database.shortage import patiently
from billfold.platform.ids import command_id

log = structlog.get_logger(__name__)

_COUNT_CALLS = """
INSERT INTO deprecated_call AS d (caller, operation, calls, first_at, last_at)
SELECT caller, operation, count(*), min(at), max(at)
  FROM unnest($1::uuid[], $2::text[], $3::timestamptz[]) AS c(caller, operation, at)
 GROUP BY caller, operation ORDER BY caller, operation
    ON CONFLICT (caller, operation) DO UPDATE
   SET calls = d.calls + excluded.calls, last_at = greatest(d.last_at, excluded.last_at)
"""
_Call = tuple[UUID, str, datetime]


class Deprecations:
    """Counts calls in memory and writes them in the background."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._calls: Batcher[_Call, None] = Batcher(self._write)

    def count(self, caller: UUID, operation: str, now: datetime) -> None:
        """Count one call of a credential at wall time `now`."""
        self._calls.ask((caller, operation, now)).add_done_callback(
            lambda done: log.warning("calls_not_counted") if done.exception() else None
        )

    async def close(self) -> None:
        """Write pending data."""
        await self._calls.settle()

    async def _write(self, batch: Sequence[_Call]) -> Sequence[None]:
        callers, operations, times = zip(*batch, strict=True)
        await self._pool.execute(_COUNT_CALLS, list(callers), list(operations), list(times))
        return [None] * len(batch)


def announcement(since: date, sunset: date) -> tuple[tuple[bytes, bytes], ...]:
    """Return the headers Deprecation (RFC 9745) and Sunset (RFC 8594), for midnight UTC."""
    begins = datetime.combine(since, time(), UTC)
    ends = datetime.combine(sunset, time(), UTC)
    return (
        (b"deprecation", f"@{int(begins.timestamp())}".encode()),
        (b"sunset", format_datetime(ends, usegmt=True).encode()),
    )


PER_MINUTE = 300
_OBJECT_WINDOW_MINUTES = 10
_COUNT = """
INSERT INTO rate_limit_window AS w (caller, kind, starts_at, used) VALUES ($1, $2, $3, $4)
ON CONFLICT (caller, kind, starts_at) DO UPDATE SET used = w.used + excluded.used RETURNING used
"""


async def count_second(pool: Pool, caller: UUID, kind: str, *, per_second: int, wall: datetime) -> None:
    """Count a request in its second of the wall clock. Raises `rate-limited` beyond the limit."""
    used = await _count(pool, caller, f"{kind}:second", wall.replace(microsecond=0))
    if used > per_second:
        detail = f"Rate limit exceeded: {per_second} request{'s' if per_second > 1 else ''} per second."
        raise ProblemWithHeaders("rate-limited", detail, (b"retry-after", b"1"))


async def count_object(
    pool: Pool,
    object_id: UUID,
    kind: str,
    *,
    limit: int,
    wall: datetime,
    more: int = 1,
    what: str = "requests",
) -> None:
    """Count an action on one object, once or several times, in ten minutes of the wall clock.

    Raises `rate-limited` beyond the limit.
    """
    window = timedelta(minutes=_OBJECT_WINDOW_MINUTES)
    starts_at = wall - (wall - datetime.min.replace(tzinfo=UTC)) % window
    if await _count(pool, object_id, kind, starts_at, more) > limit:
        retry_after = str(int((starts_at + window - wall).total_seconds()) + 1).encode()
        detail = f"Rate limit exceeded: {limit} {what} in {_OBJECT_WINDOW_MINUTES} minutes for one object."
        raise ProblemWithHeaders("rate-limited", detail, (b"retry-after", retry_after))


async def count_address(conn: Db, address: str, now: datetime, *, limit: int = PER_MINUTE) -> list[tuple[bytes, bytes]]:
    """Count a request from an address in its minute and return the headers with the remaining number.

    Raises `rate-limited` beyond `limit`.
    """
    starts = int(now.timestamp()) // WINDOW_SECONDS * WINDOW_SECONDS
    caller = command_id("address", network_of(address))
    used = await _count(conn, caller, "login", datetime.fromtimestamp(starts, UTC))
    headers = rate_limit_headers(limit, max(0, limit - used), starts + WINDOW_SECONDS)
    if used > limit:
        seconds = max(1, starts + WINDOW_SECONDS - int(now.timestamp()))
        retry_after = (b"retry-after", str(seconds).encode())
        detail = f"Rate limit exceeded: {limit} requests per minute from one address."
        raise ProblemWithHeaders("rate-limited", detail, retry_after, *headers)
    return headers


async def _count(conn: Db, caller: UUID, kind: str, starts_at: datetime, more: int = 1) -> int:
    used: int = await patiently(lambda: conn.fetchval(_COUNT, caller, kind, starts_at, more))
    return used


def response_headers(operation: Operation, admission: Admission, wall: datetime) -> Headers:
    """Return the rate limit, the clock and the deprecation of a counted request as headers."""
    headers = rate_limit_headers(admission.limit, admission.remaining, admission.resets_at)
    if admission.clock is not None:
        headers.append(clock_header(admission.clock, wall))
    if operation.deprecated is not None:
        headers += announcement(*operation.deprecated)
    return headers


def response_without_run(admission: Admission, request: RawRequest, wall: datetime) -> HttpResponse:
    """Return the response to a request that does not run: repeated or refused."""
    if admission.verdict == "replay" and admission.stored is not None:
        replayed = ((b"idempotent-replayed", b"true"), (b"x-service-idempotent-replay", b"true"))
        return replace(admission.stored, headers=replayed)
    if admission.verdict == "limited":
        seconds = max(1, admission.resets_at - int(wall.timestamp()))
        after = (b"retry-after", str(seconds).encode())
        detail = f"Rate limit exceeded: {admission.limit} requests per minute. Retry after {seconds} seconds."
        refusal = ProblemWithHeaders("rate-limited", detail, after)
    elif admission.verdict == "reused":
        refusal = ProblemWithHeaders("idempotency-key-reused", "This key already belongs to another request.")
    else:
        refusal = ProblemWithHeaders(
            "idempotency-in-progress", "The same request is still running.", (b"retry-after", b"1")
        )
    return response_to(refusal, request)
