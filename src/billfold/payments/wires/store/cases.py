"""Cases: requests to return a wire. Ours (OUTGOING) close with an answer, theirs (INCOMING) with our decision."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

import msgspec

from billfold.platform.errors import NotFound

if TYPE_CHECKING:
    from billfold.platform.database.connection import (Connection, Pool)

_COLUMNS = """case_id, direction, customer_id, wire_id, status, reason, information, message,
       opened_at, closed_at"""
_OPEN = f"""
INSERT INTO wire_case ({_COLUMNS})
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT DO NOTHING
"""
_CLOSE = """
UPDATE wire_case SET status = $3, closed_at = $4, information = coalesce($5, information)
 WHERE direction = $1 AND case_id = $2 AND status = 'OPEN'
"""
_OPEN_CASES = """
SELECT case_id FROM wire_case
 WHERE direction = 'OUTGOING' AND status = 'OPEN' AND case_id = ANY($1::text[])
"""
_LIST = f"""
SELECT {_COLUMNS} FROM wire_case WHERE ($1::text IS NULL OR status = $1)
 ORDER BY opened_at DESC, written_no DESC LIMIT $2
"""
_CASES_OF = f"SELECT {_COLUMNS} FROM wire_case WHERE wire_id = $1 AND direction = $2"


class CaseRow(msgspec.Struct, frozen=True):
    """One case. INCOMING: the sender of a wire that we received requests it. `message` is JSON text."""

    case_id: str
    direction: str
    customer_id: UUID
    wire_id: UUID
    status: str
    reason: str
    information: str | None
    message: str
    opened_at: datetime
    closed_at: datetime | None = None


async def open_case(conn: Connection | Pool, case: CaseRow) -> bool:
    """Open a case; False if a case about the wire is already open."""
    return str(await conn.execute(_OPEN, *msgspec.structs.astuple(case))) != "INSERT 0 0"


async def close_case(
    conn: Connection | Pool, direction: str, case_id: str, status: str, *, now: datetime, information: str | None = None
) -> None:
    """Close a case as ACCEPTED or REFUSED. A closed case stays unchanged."""
    await conn.execute(_CLOSE, direction, case_id, status, now, information)


async def find_open_cases(conn: Connection | Pool, case_ids: Sequence[str]) -> frozenset[str]:
    """Return our cases among these that wait for an answer."""
    return frozenset(row["case_id"] for row in await conn.fetch(_OPEN_CASES, case_ids))


async def list_cases(conn: Connection | Pool, *, status: str | None = None, limit: int = 100) -> list[CaseRow]:
    """Return cases, newest first."""
    return [CaseRow(*row) for row in await conn.fetch(_LIST, status, limit)]


async def list_cases_of(conn: Connection | Pool, wire_id: UUID, direction: str) -> list[CaseRow]:
    """Return every case about a wire, open or closed."""
    return [CaseRow(*row) for row in await conn.fetch(_CASES_OF, wire_id, direction)]


async def get_open_case(conn: Connection | Pool, wire_id: UUID, direction: str) -> CaseRow:
    """Return the open case about a wire. Raises NotFound."""
    for case in await list_cases_of(conn, wire_id, direction):
        if case.status == "OPEN":
            return case
    raise NotFound("No such case is open for this wire.")
