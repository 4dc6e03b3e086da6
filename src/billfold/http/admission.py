"""Admission of requests: checks rate limits and idempotency keys, all in one round trip.

Counts requests in fixed minutes of the wall clock, claims the idempotency keys of requests that
change something, finds stored responses, and reads the business clock at the same time. Responses are stored in batches
after they were sent, encrypted; until then they are in memory. One is stored only on the database server that admitted
its request: after a failover the next primary may lack the transfer that it confirms. A key is bound to its request
whatever becomes of it, one beyond the rate limit too, up to twice the limit.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, Literal, Self
from uuid import UUID

import asyncpg
import structlog

from billfold.http.responses import AnyResponse, HttpResponse, StreamedResponse, json_response, respond
from billfold.platform.clock import ClockState, wall_now
from billfold.platform.crypto import Vault, associated_data
from billfold.platform.database.connection import Pool
from billfold.platform.database.pool import Batcher, PinnedConnection

log = structlog.get_logger(__name__)


WINDOW_SECONDS = 60
LEASE = timedelta(seconds=10)
"""Time for which a claimed key counts as running. A later request with the same key runs again."""
KEPT = timedelta(hours=24)
_NOT_STORED = frozenset({401, 403, 429})
_STORED_BYTES_MAX, _SERVER_ERROR = 1024 * 1024, 500

Verdict = Literal["run", "limited", "replay", "running", "reused"]

# Locks are taken in the order of callers and keys, so that two processes never deadlock.
_ADMIT = """
WITH requested AS MATERIALIZED (
  SELECT * FROM unnest($1::uuid[], $2::int[], $3::int[], $4::int[], $5::int[], $6::uuid[],
                       $7::bytea[], $8::boolean[], $16::text[], $17::uuid[])
    WITH ORDINALITY AS a(caller, behind, room, money_behind, money_room, key, fingerprint,
                         claims, kind, owner, n)
), counted AS (
  INSERT INTO rate_limit_window AS w (caller, kind, starts_at, used)
  SELECT c.caller, c.kind, $9, c.used
    FROM unnest($10::uuid[], $11::text[], $12::int[]) AS c(caller, kind, used)
   ORDER BY c.caller, c.kind
      ON CONFLICT (caller, kind, starts_at) DO UPDATE SET used = w.used + excluded.used
  RETURNING w.caller, w.kind, w.used
), admitted AS MATERIALIZED (
  SELECT a.*, r.used - a.behind AS used, m.used - a.money_behind AS money_used,
         r.used - a.behind <= a.room AND coalesce(m.used - a.money_behind <= a.money_room, true) AS within
    FROM requested a
    JOIN counted r ON r.caller = a.caller AND r.kind = a.kind
    LEFT JOIN counted m ON m.caller = a.caller AND m.kind = 'money' AND a.money_behind IS NOT NULL
), claimed AS (
  INSERT INTO idempotency_key AS k (caller, key, fingerprint, claimed_at, lease_until)
  SELECT a.owner, a.key, a.fingerprint, $13::timestamptz,
         CASE WHEN a.within THEN $14::timestamptz ELSE $13::timestamptz END
    FROM admitted a
   WHERE CASE WHEN a.within THEN a.claims ELSE a.key IS NOT NULL AND a.used <= 2 * a.room END
   ORDER BY a.owner, a.key
      ON CONFLICT (caller, key) DO UPDATE
     SET fingerprint = excluded.fingerprint, claimed_at = excluded.claimed_at,
         lease_until = excluded.lease_until, status = NULL, content_type = NULL, response_body = NULL
   WHERE k.claimed_at < $15
      OR (k.status IS NULL AND k.lease_until <= $13 AND k.fingerprint = excluded.fingerprint)
  RETURNING k.caller, k.key
)
SELECT a.used, a.money_used, c.key IS NOT NULL AS claimed, k.fingerprint, k.status,
       k.content_type, k.response_body, t.business_anchor, t.wall_anchor, t.frozen,
       pg_postmaster_start_time() AS server
  FROM admitted a
  LEFT JOIN claimed c ON c.caller = a.owner AND c.key = a.key
  LEFT JOIN LATERAL (
    SELECT s.fingerprint, s.status, s.content_type, s.response_body FROM idempotency_key s
     WHERE c.key IS NULL AND s.caller = a.owner AND s.key = a.key AND s.claimed_at >= $15
    OFFSET 0) k ON true
  LEFT JOIN clock t ON true
 ORDER BY a.n
"""
_STORE = """
INSERT INTO idempotency_key AS k (caller, key, fingerprint, claimed_at, lease_until, status,
                              content_type, response_body)
SELECT r.caller, r.key, r.fingerprint, $1, $1, r.status, r.content_type, r.response_body
  FROM unnest($2::uuid[], $3::uuid[], $4::bytea[], $5::smallint[], $6::text[], $7::bytea[], $9::timestamptz[])
    AS r(caller, key, fingerprint, status, content_type, response_body, server)
 WHERE r.server = pg_postmaster_start_time()
 ORDER BY r.caller, r.key
    ON CONFLICT (caller, key) DO UPDATE
   SET fingerprint = excluded.fingerprint, claimed_at = excluded.claimed_at,
       status = excluded.status, content_type = excluded.content_type, response_body = excluded.response_body
 WHERE (k.status IS NULL AND k.fingerprint = excluded.fingerprint) OR k.claimed_at < $8
"""
# The key stays bound: the same request may run again, no other may use it.
_RELEASE = """
INSERT INTO idempotency_key AS k (caller, key, fingerprint, claimed_at, lease_until)
SELECT r.caller, r.key, r.fingerprint, $1, $1
  FROM unnest($2::uuid[], $3::uuid[], $4::bytea[]) AS r(caller, key, fingerprint)
 ORDER BY r.caller, r.key
    ON CONFLICT (caller, key) DO UPDATE SET lease_until = excluded.lease_until
 WHERE k.status IS NULL AND k.fingerprint = excluded.fingerprint
"""


@dataclass(frozen=True, slots=True)
class AdmissionRequest:
    """A request to be admitted. `claims` is true if its key is to be claimed, because running it twice would matter.

    Counts belong to the `caller`, whose requests of its kind per minute are limited; keys to the `key_owner`.
    """

    caller: UUID
    key_owner: UUID
    per_minute: int
    money_per_minute: int
    key: UUID | None
    fingerprint: bytes
    claims: bool
    moves_money: bool
    kind: str = "all"
    """The requests it is counted with: all of its caller, or those of one group of operations."""


@dataclass(slots=True)
class Admission:
    """The verdict on a request, and how many more its caller may send."""

    verdict: Verdict
    limit: int
    remaining: int
    resets_at: int
    clock: ClockState | None
    server: datetime
    """Start time of the database server that admitted it, which identifies the server."""
    stored: HttpResponse | None = None


@dataclass(slots=True)
class _Open:
    """A key this process is working on, or whose response is about to be stored."""

    fingerprint: bytes
    server: datetime | None = None
    response: HttpResponse | None = None


_clock_of = lru_cache(1)(ClockState)
"""The clock of a sandbox is hardly ever set."""
Slot = tuple[UUID, UUID]
_Stored = tuple[Slot, _Open, HttpResponse]


class CommittedResponse:
    """The response to an admitted request, kept by its command; then it is sent as it was kept."""

    def __init__(self, vault: Vault, request: AdmissionRequest, status: int) -> None:
        self._vault, self._request, self._status = vault, request, status
        self._render: Callable[[dict[str, Any]], object] = dict
        self._response: HttpResponse | None = None
        self.is_kept = False

    def of(self, render: Callable[[dict[str, Any]], object]) -> Self | None:
        """Return the response to an outcome, None if nothing repeats the request."""
        self._render = render
        return None if self._request.key is None else self

    def row(self, outcome: dict[str, Any]) -> tuple[Any, ...]:
        """Return the arguments of `response_keep`."""
        owner, key = self._request.key_owner, self._request.key
        self._response = made = json_response(self._render(outcome), self._status)
        body = self._vault.seal(made.body, _place(owner, key))
        return owner, key, self._request.fingerprint, made.status, made.content_type, body, wall_now()

    def respond(self, result: object) -> AnyResponse:
        """Return the response as it was kept, or else that for a handler's result."""
        return self._response if self.is_kept and self._response else respond(result, self._status)


class IdempotencyStore:
    """The admission of one process. Several processes share their counters and keys in the database.

    After a crash these may be stale, since nothing waits for the disk: the engine remembers what moved money.
    """

    def __init__(self, pool: Pool, vault: Vault, *, lease: timedelta = LEASE, by_pooler: bool = False) -> None:
        self._vault = vault
        self._lease = lease
        self._connections = tuple(PinnedConnection(pool, by_pooler=by_pooler) for _ in range(2))
        self._admitted: Batcher[AdmissionRequest, Admission] = Batcher(self._admit_all)
        self._stored: Batcher[_Stored, None] = Batcher(self._store_all)
        self._released: Batcher[tuple[Slot, bytes], None] = Batcher(self._release_all)
        self._open: dict[Slot, _Open] = {}

    async def admit(self, request: AdmissionRequest) -> Admission:
        """Count a request and look up its key. Raises Unavailable without a database."""
        if request.key is None:
            return await self._admitted.ask(request)
        slot = (request.key_owner, request.key)
        if (known := self._open.get(slot)) is not None:
            admission = await self._admitted.ask(replace(request, key=None, claims=False))
            if admission.verdict == "run":
                admission.verdict, admission.stored = _recalled(known, request.fingerprint, admission.server)
            return admission
        opened = self._open[slot] = _Open(request.fingerprint)
        try:
            admission = await self._admitted.ask(request)
            if admission.stored is not None:
                body = self._vault.open(admission.stored.body, _place(*slot))
                admission.stored = replace(admission.stored, body=body)
        except BaseException:
            self._open.pop(slot, None)
            raise
        opened.server = admission.server
        if admission.verdict != "run":
            self._open.pop(slot, None)
        return admission

    def committed(self, request: AdmissionRequest, status: int) -> CommittedResponse:
        """Return the response of an admitted request for the command that may keep it."""
        return CommittedResponse(self._vault, request, status)

    def keep_response(self, request: AdmissionRequest, response: AnyResponse, *, is_kept: bool = False) -> bool:
        """Store a response that repeated requests shall get, with the next batch; tell whether it is one.

        If it `is_kept`, by the commit of its command, there is nothing left to write.
        """
        if isinstance(response, StreamedResponse) or response.status in _NOT_STORED or response.status >= _SERVER_ERROR:
            return False
        if len(response.body) > _STORED_BYTES_MAX:
            return False
        if request.key is not None:
            slot = (request.key_owner, request.key)
            if is_kept:
                self._open.pop(slot, None)
                return True
            known = self._open[slot]
            known.response = response
            future = self._stored.ask((slot, known, response))
            future.add_done_callback(lambda done: self._forget(slot, done.exception()))
        return True

    async def release(self, request: AdmissionRequest) -> None:
        """End an admitted request without a response to keep. Its key stays bound to it: only it may run again."""
        if request.key is None:
            return
        slot = (request.key_owner, request.key)
        try:
            await self._released.ask((slot, request.fingerprint))
        finally:
            self._open.pop(slot, None)

    async def close(self) -> None:
        """Write pending data and release the connections."""
        for batcher in (self._admitted, self._stored, self._released):
            await batcher.settle()
        for each in self._connections:
            await each.close()

    def _forget(self, slot: Slot, error: BaseException | None) -> None:
        self._open.pop(slot, None)
        if error is not None:
            log.warning("response_not_stored", error=repr(error))

    async def _admit_all(self, batch: Sequence[AdmissionRequest]) -> Sequence[Admission]:
        now = wall_now()
        starts = int(now.timestamp()) // WINDOW_SECONDS * WINDOW_SECONDS
        counts: Counter[tuple[UUID, str]] = Counter()
        for request in batch:
            counts[request.caller, request.kind] += 1
            counts[request.caller, "money"] += request.moves_money
        counts = +counts
        left = counts.copy()
        requested = [_request_row(request, left) for request in batch]
        rows = await self._connections[0].fetch(
            _ADMIT,
            *map(list, zip(*requested, strict=True)),
            datetime.fromtimestamp(starts, UTC),
            [caller for caller, _ in counts],
            [kind for _, kind in counts],
            list(counts.values()),
            now,
            now + self._lease,
            now - KEPT,
            [request.kind for request in batch],
            [request.key_owner for request in batch],
        )
        return [_admission(request, row, starts + WINDOW_SECONDS) for request, row in zip(batch, rows, strict=True)]

    async def _store_all(self, batch: Sequence[_Stored]) -> Sequence[None]:
        slots, known, responses = zip(*batch, strict=True)
        now = wall_now()
        await self._connections[1].fetch(
            _STORE,
            now,
            [caller for caller, _ in slots],
            [key for _, key in slots],
            [each.fingerprint for each in known],
            [each.status for each in responses],
            [each.content_type for each in responses],
            [self._vault.seal(each.body, _place(*slot)) for slot, _, each in batch],
            now - KEPT,
            [each.server for each in known],
        )
        return [None] * len(batch)

    async def _release_all(self, batch: Sequence[tuple[Slot, bytes]]) -> Sequence[None]:
        owners, keys, fingerprints = zip(*((*slot, fingerprint) for slot, fingerprint in batch), strict=True)
        await self._connections[0].fetch(_RELEASE, wall_now(), list(owners), list(keys), list(fingerprints))
        return [None] * len(batch)


def _recalled(known: _Open, fingerprint: bytes, server: datetime) -> tuple[Verdict, HttpResponse | None]:
    if known.fingerprint != fingerprint:
        return "reused", None
    return ("replay", known.response) if known.response and known.server == server else ("running", None)


def _request_row(request: AdmissionRequest, left: Counter[tuple[UUID, str]]) -> tuple[object, ...]:
    """Return a request in the form of the arrays. `behind` says how many of its caller come after it."""
    caller, money_behind = request.caller, None
    left[caller, request.kind] -= 1
    if request.moves_money:
        left[caller, "money"] -= 1
        money_behind = left[caller, "money"]
    return (
        caller,
        left[caller, request.kind],
        request.per_minute,
        money_behind,
        request.money_per_minute,
        request.key,
        request.fingerprint,
        request.claims,
    )


def _place(owner: UUID, key: UUID | None) -> bytes:
    return associated_data("idempotency_key", "response_body", key, tenant_id=owner)


def _admission(request: AdmissionRequest, row: asyncpg.Record, resets_at: int) -> Admission:
    limit, remaining = request.per_minute, request.per_minute - row["used"]
    if row["money_used"] is not None:
        money_left = request.money_per_minute - row["money_used"]
        if money_left < remaining:
            limit, remaining = request.money_per_minute, money_left
    clock = None
    if row["frozen"] is not None:
        clock = _clock_of(row["business_anchor"], row["wall_anchor"], row["frozen"])
    admission = Admission("run", limit, max(remaining, 0), resets_at=resets_at, clock=clock, server=row["server"])
    if remaining < 0:
        admission.verdict = "limited"
    elif request.key is not None and not row["claimed"]:
        admission.verdict, admission.stored = _looked_up(request, row)
    return admission


def _looked_up(request: AdmissionRequest, row: asyncpg.Record) -> tuple[Verdict, HttpResponse | None]:
    """Judge a key that was not claimed: it is in use, or need not be claimed."""
    if row["fingerprint"] is None:
        # Unowned, or claimed by another process a moment ago.
        return ("running" if request.claims else "run"), None
    if row["fingerprint"] != request.fingerprint:
        return "reused", None
    if row["status"] is None:
        # An unclaimed request never runs: the key is bound to a request that got no response to keep.
        return ("running" if request.claims else "run"), None
    return "replay", HttpResponse(row["status"], row["content_type"], row["response_body"])


def rate_limit_headers(limit: int, remaining: int, resets_at: int) -> list[tuple[bytes, bytes]]:
    """Return the headers with the remaining number of requests and the reset time in Unix seconds."""
    return [
        (b"x-ratelimit-limit", str(limit).encode()),
        (b"x-ratelimit-remaining", str(remaining).encode()),
        (b"x-ratelimit-reset", str(resets_at).encode()),
    ]
