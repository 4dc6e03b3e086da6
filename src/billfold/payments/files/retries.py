"""Inbound files that fail are retried later and block no other file, until they succeed or are closed.

The retry state is stored in the file's report until the file is completed. Delays are wall time:
they pass even when the bank's clock stands still.
"""

from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec
import structlog

from billfold.dual_control.decisions import propose_movement
from billfold.dual_control.store import FreezeProposal
from billfold.identity.operators import Operator, Power
from billfold.ledger.bank import Bank
from billfold.payments.files.rules import CloseRailFile
from billfold.payments.files.store import COLUMNS, RAIL_FILES, find_file
from billfold.payments.files.types import RailFile, RetryState
from billfold.platform import ids
from billfold.platform.clock import wall_now
from billfold.platform.database.background_work import retry_delay
from billfold.platform.database.connection import Db
from billfold.platform.dates import iso_z
from billfold.platform.errors import Refused

log = structlog.get_logger(__name__)

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
_REFUSED = f"""
SELECT {COLUMNS} FROM rail_file f
 WHERE direction = 'IN' AND state = 'REFUSED' AND created_at > $1
   AND NOT EXISTS (SELECT 1 FROM rail_file g WHERE g.created_at >= f.created_at AND (g.rail, g.name) = (f.rail, f.name)
                      AND g.direction = 'IN' AND g.state <> 'REFUSED')
 ORDER BY created_at, name, file_id
"""
_SET_REPORT = "UPDATE rail_file SET report = $2 WHERE file_id = $1 AND done_at IS NULL"
_RETRY_NOW = """
UPDATE rail_file
   SET report = jsonb_set(report::jsonb, '{again_at}', to_jsonb($2::text))::json
 WHERE file_id = $1 AND done_at IS NULL AND report IS NOT NULL
"""


def retry_state_of(file: RailFile) -> RetryState | None:
    """Return the retry state of a file; None if it has none."""
    if file.done_at is not None or file.report is None:
        return None
    return msgspec.json.decode(file.report, type=RetryState)


async def postpone_file(bank: Bank, file: RailFile, *, error: str | None = None, **fields: object) -> bytes:
    """Schedule the next retry of a file and log it; return its report, extended by `fields`."""
    previous: dict[str, Any] = msgspec.json.decode(file.report or "{}")
    tries = previous.get("tries", 0) + 1
    again_at = iso_z(wall_now() + retry_delay(tries))
    previous |= {"file": file.name, "state": file.state, "tries": tries, "again_at": again_at}
    report = msgspec.json.encode({**previous, "error": error, **fields})
    await bank.pool.execute(_SET_REPORT, file.file_id, report.decode())
    retry = msgspec.json.decode(report, type=RetryState)
    log.error("rail_file_postponed", name=file.name, tries=tries, error=retry.words())
    return report


async def retry_now(conn: Db, file: RailFile, wall: datetime) -> None:
    """Make a postponed file due now."""
    await conn.execute(_RETRY_NOW, file.file_id, iso_z(wall))


async def retry_as_operator(bank: Bank, file_id: UUID, by: Operator) -> RailFile:
    """Make a postponed file due now; one that is not waiting is not changed. Raises NotFound, Refused."""
    by.require(Power.MOVE_MONEY)
    file = await find_file(bank.pool, file_id)
    await retry_now(bank.pool, file, wall_now())
    return file


async def list_due(conn: Db, rail: str, wall: datetime) -> list[RailFile]:
    """Return incomplete inbound files whose retry is due, oldest first."""
    return await RAIL_FILES.all(conn, _DUE, rail, wall)


async def list_refused(conn: Db, since: datetime) -> list[RailFile]:
    """Return files refused since an instant of business time that have not been received again, oldest first."""
    return await RAIL_FILES.all(conn, _REFUSED, since)


async def list_failing(conn: Db) -> list[RailFile]:
    """Return inbound files of all rails that failed and wait for a retry, oldest first."""
    return await RAIL_FILES.all(conn, _FAILING)


async def propose_close(bank: Bank, file_id: UUID, *, reason: str, by: Operator) -> FreezeProposal:
    """Propose to complete a waiting file without the lines that cannot be booked.

    `reason` states how those were handled: it stays in the file's report.

    Raises NotFound, InvalidInput, Refused `file-not-waiting`, `proposal-open`.
    """
    by.require(Power.MOVE_MONEY)
    file = await find_file(bank.pool, file_id)
    failure = retry_state_of(file)
    if failure is None:
        raise Refused("file-not-waiting", f"{file.name} is {file.state}: nothing of it waits.")
    command = CloseRailFile(
        caller="operator",
        key=ids.new(),
        customers=(bank.own_id,),
        origin=by.origin,
        file_id=file_id,
        rail=file.rail,
        reason=reason,
    )
    words = f"Close {file.rail} file {file.name}, of which this is never booked: {failure.words()}"
    return await propose_movement(bank, command, about=file_id, words=words, reason=reason, by=by)
