"""Calls of operations on their way out: announced to the caller, counted for the operator."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, time
from email.utils import format_datetime
from typing import TYPE_CHECKING
from uuid import UUID

import structlog

from billfold.platform.database.pool import Batcher

if TYPE_CHECKING:
    from billfold.platform.database.connection import (Pool)

log = structlog.get_logger(__name__)

_COUNT = """
INSERT INTO deprecated_call AS d (caller, operation, calls, first_at, last_at)
SELECT caller, operation, count(*), min(at), max(at)
  FROM unnest($1::uuid[], $2::text[], $3::timestamptz[]) AS c(caller, operation, at)
 GROUP BY caller, operation ORDER BY caller, operation
    ON CONFLICT (caller, operation) DO UPDATE
   SET calls = d.calls + excluded.calls, last_at = greatest(d.last_at, excluded.last_at)
"""
_Call = tuple[UUID, str, datetime]


class Deprecations:
    """Counts calls in memory and writes them down behind the caller's back."""

    __slots__ = ("_calls", "_pool")

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._calls: Batcher[_Call, None] = Batcher(self._write)

    def count(self, caller: UUID, operation: str, now: datetime) -> None:
        """Count one call of a credential at wall time `now`."""
        self._calls.ask((caller, operation, now)).add_done_callback(
            lambda done: log.warning("calls_not_counted") if done.exception() else None
        )

    async def close(self) -> None:
        """Write down what is under way."""
        await self._calls.settle()

    async def _write(self, batch: Sequence[_Call]) -> Sequence[None]:
        callers, operations, times = zip(*batch, strict=True)
        await self._pool.execute(_COUNT, list(callers), list(operations), list(times))
        return [None] * len(batch)


def announcement(since: date, sunset: date) -> tuple[tuple[bytes, bytes], ...]:
    """Return the headers Deprecation (RFC 9745) and Sunset (RFC 8594), for midnight UTC."""
    begins = datetime.combine(since, time(), UTC)
    ends = datetime.combine(sunset, time(), UTC)
    return (
        (b"deprecation", f"@{int(begins.timestamp())}".encode()),
        (b"sunset", format_datetime(ends, usegmt=True).encode()),
    )
