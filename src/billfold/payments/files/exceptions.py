"""Files of theirs that cannot be finished: what is wrong, and when they are tried again.

It stands in the file's report until the file is finished. Pauses are of wall time: where the
bank's clock stands still they pass too.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec

from billfold.payments.files.store import COLUMNS, RailFile, rail_file_of
from billfold.platform.dates import iso_z

if TYPE_CHECKING:
    from billfold.platform.database.pool import Connection, Pool

RETRY_MIN_SECONDS, RETRY_MAX_SECONDS = 30, 3_600
_DOUBLINGS_MAX = 7

_DUE = f"""
SELECT {COLUMNS} FROM rail_file
 WHERE rail = $1 AND direction = 'IN' AND done_at IS NULL
   AND (report IS NULL OR (report->>'again_at')::timestamptz <= $2)
 ORDER BY created_at, name, file_id
"""
_FAILING = f"""
SELECT {COLUMNS} FROM rail_file
 WHERE direction = 'IN' AND done_at IS NULL AND report IS NOT NULL
 ORDER BY created_at, name, file_id
"""
_SET_REPORT = "UPDATE rail_file SET report = $2 WHERE file_id = $1 AND done_at IS NULL"
_RETRY_NOW = """
UPDATE rail_file
   SET report = jsonb_set(report::jsonb, '{again_at}', to_jsonb($2::text))::json
 WHERE file_id = $1 AND done_at IS NULL AND report IS NOT NULL
"""


class StuckLine(msgspec.Struct, frozen=True):
    """A line of a file that cannot be booked, and why.

    `refused` is how often a rule said no: that is remembered under the key it came under.
    """

    line: int
    trace: str
    error: str
    refused: int = 0


class RetryState(msgspec.Struct, frozen=True, kw_only=True):
    """What keeps a file from being finished: some of its lines, or an error of all of it."""

    tries: int
    again_at: datetime
    error: str | None = None
    stuck: list[StuckLine] = []

    def words(self) -> str:
        """Say the first thing that is wrong, with its line, and how many more lines wait."""
        if not self.stuck:
            return self.error or ""
        first, more = self.stuck[0], len(self.stuck) - 1
        text = self.error or f"line {first.line}: {first.error}"
        return f"{text} (and {more} more)" if more else text


def retry_state_of(file: RailFile) -> RetryState | None:
    """Return what keeps a file from being finished, if anything does."""
    if file.done_at is not None or file.report is None:
        return None
    return msgspec.json.decode(file.report, type=RetryState)


def retry_delay(tries: int) -> timedelta:
    """Return how long to wait after so many tries: twice as long each time, an hour at most."""
    seconds = RETRY_MIN_SECONDS << min(tries - 1, _DOUBLINGS_MAX)
    return timedelta(seconds=min(seconds, RETRY_MAX_SECONDS))


async def schedule_retry(
    conn: Connection | Pool, file: RailFile, *, wall: datetime, error: str | None = None, **fields: object
) -> bytes:
    """Let a file wait, longer each time; return its report, to which this adds what is `told`."""
    previous: dict[str, Any] = msgspec.json.decode(file.report or "{}")
    tries = previous.get("tries", 0) + 1
    again_at = iso_z(wall + retry_delay(tries))
    previous |= {"file": file.name, "state": file.state, "tries": tries, "again_at": again_at}
    report = msgspec.json.encode({**previous, "error": error, **fields})
    await conn.execute(_SET_REPORT, file.file_id, report.decode())
    return report


async def retry_now(conn: Connection | Pool, file: RailFile, wall: datetime) -> None:
    """Let a file that waits be tried now."""
    await conn.execute(_RETRY_NOW, file.file_id, iso_z(wall))


async def list_due(conn: Connection | Pool, rail: str, wall: datetime) -> list[RailFile]:
    """Return files of theirs that are not finished and whose pause is over, oldest first."""
    return [rail_file_of(row) for row in await conn.fetch(_DUE, rail, wall)]


async def list_failing(conn: Connection | Pool) -> list[RailFile]:
    """Return files of all rails that cannot be finished, oldest first."""
    return [rail_file_of(row) for row in await conn.fetch(_FAILING)]
