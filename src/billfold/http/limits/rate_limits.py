"""Rate limits beside those of admission: by IP address where no token is needed, by the second, and of one object."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

from billfold.http.limits.idempotency import WINDOW_SECONDS, Admission
from billfold.http.raw_request import RawRequest
from billfold.http.responses import HttpResponse, ProblemWithHeaders, response_to
from billfold.platform.addresses import network_of
from billfold.platform.database.connection import Connection, Pool
from billfold.platform.database.shortage import patiently
from billfold.platform.ids import command_id

PER_MINUTE = 300
_OBJECT_WINDOW_MINUTES = 10
_COUNT = """
INSERT INTO rate_limit_window AS w (caller, kind, starts_at, used) VALUES ($1, $2, $3, 1)
ON CONFLICT (caller, kind, starts_at) DO UPDATE SET used = w.used + 1 RETURNING used
"""


async def count_second(pool: Pool, caller: UUID, kind: str, *, per_second: int, wall: datetime) -> None:
    """Count a request in its second of the wall clock. Raises `rate-limited` beyond the limit."""
    used = await _count(pool, caller, f"{kind}:second", wall.replace(microsecond=0))
    if used > per_second:
        detail = f"Rate limit exceeded: {per_second} request{'s' if per_second > 1 else ''} per second."
        raise ProblemWithHeaders("rate-limited", detail, (b"retry-after", b"1"))


async def count_object(pool: Pool, object_id: UUID, kind: str, *, limit: int, wall: datetime) -> None:
    """Count what is done to one object in ten minutes of the wall clock. Raises `rate-limited` beyond the limit."""
    window = timedelta(minutes=_OBJECT_WINDOW_MINUTES)
    starts_at = wall - (wall - datetime.min.replace(tzinfo=UTC)) % window
    if await _count(pool, object_id, kind, starts_at) > limit:
        retry_after = str(int((starts_at + window - wall).total_seconds()) + 1).encode()
        detail = f"Rate limit exceeded: {limit} requests in {_OBJECT_WINDOW_MINUTES} minutes for one object."
        raise ProblemWithHeaders("rate-limited", detail, (b"retry-after", retry_after))


async def count_address(
    conn: Connection | Pool, address: str, now: datetime, *, limit: int = PER_MINUTE
) -> list[tuple[bytes, bytes]]:
    """Count a request from an address in its minute and return the headers that say how many are left.

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


async def _count(conn: Connection | Pool, caller: UUID, kind: str, starts_at: datetime) -> int:
    used: int = await patiently(lambda: conn.fetchval(_COUNT, caller, kind, starts_at))
    return used


def rate_limit_headers(limit: int, remaining: int, resets_at: int) -> list[tuple[bytes, bytes]]:
    """Return the headers that say how many requests are left, until when in Unix seconds."""
    return [
        (b"x-ratelimit-limit", str(limit).encode()),
        (b"x-ratelimit-remaining", str(remaining).encode()),
        (b"x-ratelimit-reset", str(resets_at).encode()),
    ]


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
