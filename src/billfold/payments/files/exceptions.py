"""Files of theirs that cannot be finished: what is wrong, and when they are tried again.

It stands in the file's report until the file is finished. Pauses are of wall time: where the
bank's clock stands still they pass too.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec

from billfold.payments.files.store import COLUMNS, RailFile, file_of
from billfold.platform.dates import iso_z

if TYPE_CHECKING:
    from billfold.platform.database.pool import Connection, Pool

FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 30, 3_600
_DOUBLED_AT_MOST = 7

_TO_TAKE = f"""
SELECT {COLUMNS} FROM rail_file
 WHERE rail = $1 AND direction = 'IN' AND done_at IS NULL
   AND (report IS NULL OR (report->>'again_at')::timestamptz <= $2)
 ORDER BY created_at, name, file_id
"""
_IN_TROUBLE = f"""
SELECT {COLUMNS} FROM rail_file
 WHERE direction = 'IN' AND done_at IS NULL AND report IS NOT NULL
 ORDER BY created_at, name, file_id
"""
_NOTE = "UPDATE rail_file SET report = $2 WHERE file_id = $1 AND done_at IS NULL"
_TRY_AGAIN = """
UPDATE rail_file
   SET report = jsonb_set(report::jsonb, '{again_at}', to_jsonb($2::text))::json
 WHERE file_id = $1 AND done_at IS NULL AND report IS NOT NULL
"""


class Stuck(msgspec.Struct, frozen=True):
    """A line of a file that cannot be booked, and why.

    `refused` is how often a rule said no: that is remembered under the key it came under.
    """

    line: int
    trace: str
    error: str
    refused: int = 0


class Trouble(msgspec.Struct, frozen=True, kw_only=True):
    """What keeps a file from being finished: some of its lines, or an error of all of it."""

    tries: int
    again_at: datetime
    error: str | None = None
    stuck: list[Stuck] = []

    def words(self) -> str:
        """Say the first thing that is wrong, with its line, and how many more lines wait."""
        if not self.stuck:
            return self.error or ""
        first, more = self.stuck[0], len(self.stuck) - 1
        said = self.error or f"line {first.line}: {first.error}"
        return f"{said} (and {more} more)" if more else said


def trouble_of(file: RailFile) -> Trouble | None:
    """Return what keeps a file from being finished, if anything does."""
    if file.done_at is not None or file.report is None:
        return None
    return msgspec.json.decode(file.report, type=Trouble)


def pause_after(tries: int) -> timedelta:
    """Return how long to wait after so many tries: twice as long each time, an hour at most."""
    seconds = FIRST_PAUSE_SECONDS << min(tries - 1, _DOUBLED_AT_MOST)
    return timedelta(seconds=min(seconds, LONGEST_PAUSE_SECONDS))


async def note_trouble(
    conn: Connection | Pool,
    file: RailFile,
    *,
    wall: datetime,
    error: str | None = None,
    **told: object,
) -> bytes:
    """Let a file wait, longer each time; return its report, to which this adds what is `told`."""
    so_far: dict[str, Any] = msgspec.json.decode(file.report or "{}")
    tries = so_far.get("tries", 0) + 1
    again_at = iso_z(wall + pause_after(tries))
    so_far |= {"file": file.name, "state": file.state, "tries": tries, "again_at": again_at}
    report = msgspec.json.encode({**so_far, "error": error, **told})
    await conn.execute(_NOTE, file.file_id, report.decode())
    return report


async def try_again(conn: Connection | Pool, file: RailFile, wall: datetime) -> None:
    """Let a file that waits be tried now."""
    await conn.execute(_TRY_AGAIN, file.file_id, iso_z(wall))


async def list_to_take(conn: Connection | Pool, rail: str, wall: datetime) -> list[RailFile]:
    """Return files of theirs that are not finished and whose pause is over, oldest first."""
    return [file_of(row) for row in await conn.fetch(_TO_TAKE, rail, wall)]


async def list_in_trouble(conn: Connection | Pool) -> list[RailFile]:
    """Return files of all rails that cannot be finished, oldest first."""
    return [file_of(row) for row in await conn.fetch(_IN_TROUBLE)]
