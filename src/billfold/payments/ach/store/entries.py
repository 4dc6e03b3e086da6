"""Queries of ACH entries."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from billfold.payments.ach.rules.risk import ADMINISTRATIVE, HISTORY_DAYS, UNAUTHORISED
from billfold.payments.ach.types import AchEntry, OriginationHistory
from billfold.platform.database.connection import Connection, Pool
from billfold.platform.database.paging import BY_CREATION, Along, BoundedList, KeysetList
from billfold.platform.database.rows import reads
from billfold.platform.dates import et_date, et_instant
from billfold.platform.errors import NotFound

COLUMNS = AchEntry.__struct_fields__
_SELECT = f"SELECT {', '.join(COLUMNS)} FROM ach_entry"
_REFERENCED = f"""
{_SELECT} WHERE customer_id = ANY($1::uuid[]) AND ach_id = ANY($2::uuid[])
UNION ALL
{_SELECT} WHERE customer_id = ANY($1::uuid[]) AND reverses_id = ANY($2::uuid[])
   AND reverses_id IS NOT NULL AND status NOT IN ('REJECTED', 'CANCELLED')
"""
_OPEN_ENTRIES = f"""
SELECT DISTINCT ON (customer_id, pocket_id) {", ".join(COLUMNS)} FROM ach_entry
 WHERE customer_id = ANY($1::uuid[]) AND way = 'ORIGINATION' AND pocket_id IS NOT NULL
   AND (status IN ('PENDING', 'APPROVED')
        OR (status = 'IN_TRANSIT' AND direction = 'DEBIT' AND entry_no IS NULL))
 ORDER BY customer_id, pocket_id
"""
_GET = f"{_SELECT} WHERE customer_id = $1 AND ach_id = $2 AND way = 'ORIGINATION'"
_BY_TRACES = f"""{_SELECT}
 WHERE trace_number = ANY($1::text[]) AND way = 'ORIGINATION' ORDER BY created_at"""
_TO_REVIEW = f"{_SELECT} WHERE status = 'PENDING' ORDER BY created_at, written_no LIMIT $1"
_FIND = f"{_SELECT} WHERE ach_id = $1"
_ENTRIES = f"""{_SELECT}
 WHERE ($1::uuid IS NULL OR customer_id = $1) AND ($2::text IS NULL OR trace_number = $2)
   AND ($3::text IS NULL OR way = $3) AND ($4::text IS NULL OR direction = $4)
   AND ($5::text IS NULL OR status = $5)
 ORDER BY created_at DESC, written_no DESC LIMIT $6"""
_HISTORY = """
SELECT coalesce(sum(amount) FILTER (WHERE created_at >= $2), 0)::bigint,
       count(*) FILTER (WHERE direction = 'DEBIT' AND trace_number IS NOT NULL),
       count(*) FILTER (WHERE direction = 'DEBIT' AND return_code IS NOT NULL),
       count(*) FILTER (WHERE direction = 'DEBIT' AND return_code = ANY($4::text[])),
       count(*) FILTER (WHERE direction = 'DEBIT' AND return_code = ANY($5::text[]))
  FROM ach_entry
 WHERE customer_id = $1 AND way = 'ORIGINATION' AND created_at >= $3
   AND status NOT IN ('REJECTED', 'CANCELLED')
"""


ORIGINATIONS = KeysetList(
    f"""SELECT {", ".join(COLUMNS)}, written_no FROM ach_entry
 WHERE customer_id = $1 AND way = 'ORIGINATION' AND ($2::uuid IS NULL OR pocket_id = $2)
   AND ($3::text[] IS NULL OR status = ANY($3)) AND ($4::text IS NULL OR direction = $4) AND {{page}}""",
    reads(AchEntry),
    **BY_CREATION,
)
"""The originations of a customer, by Pocket, statuses and direction; None does not filter."""
ORIGINATIONS_OF_PARTNER = BoundedList(
    f"""SELECT {", ".join(COLUMNS)}, written_no FROM ach_entry
 WHERE partner_id = $1 AND way = 'ORIGINATION' AND ($2::text[] IS NULL OR status = ANY($2))
   AND ($3::text IS NULL OR direction = $3) AND ($4::boolean IS NULL OR (return_code IS NOT NULL) = $4) AND {{page}}""",
    reads(AchEntry),
    Along("ach_entry WHERE partner_id = $1 AND way = 'ORIGINATION'"),
    **BY_CREATION,
)
"""The originations of all customers of a partner, by statuses, direction and whether they were returned."""


async def load_references(
    conn: Connection, customer_ids: Sequence[UUID], ids: Sequence[UUID]
) -> list[tuple[UUID, UUID, Any]]:
    """Return the entries among these ids, and what reverses them, as (customer, id, entry)."""
    rows = await conn.fetch(_REFERENCED, customer_ids, ids)
    return [(row["customer_id"], row["ach_id"], AchEntry(**row)) for row in rows]


async def load_open_entries(
    conn: Connection, customer_ids: Sequence[UUID], ids: Sequence[UUID]
) -> list[tuple[UUID, UUID, Any]]:
    """Return one open entry of each Pocket that has any."""
    del ids
    rows = await conn.fetch(_OPEN_ENTRIES, customer_ids)
    return [(row["customer_id"], row["ach_id"], AchEntry(**row)) for row in rows]


async def get_origination(conn: Connection | Pool, customer_id: UUID, ach_id: UUID) -> AchEntry:
    """Return an entry the customer originated. Raises NotFound."""
    row = await conn.fetchrow(_GET, customer_id, ach_id)
    if row is None:
        raise NotFound("There is no such ACH origination.")
    return AchEntry(**row)


async def get_entry(conn: Connection | Pool, ach_id: UUID) -> AchEntry:
    """Return an entry of any customer, for the operator. Raises NotFound."""
    row = await conn.fetchrow(_FIND, ach_id)
    if row is None:
        raise NotFound("There is no such ACH entry.")
    return AchEntry(**row)


async def list_entries(
    conn: Connection | Pool,
    *,
    customer_id: UUID | None = None,
    trace: str | None = None,
    way: str | None = None,
    direction: str | None = None,
    status: str | None = None,
    limit: int = 100,
) -> list[AchEntry]:
    """Return entries of all customers, for the operator, newest first."""
    rows = await conn.fetch(_ENTRIES, customer_id, trace, way, direction, status, limit)
    return [AchEntry(**row) for row in rows]


async def find_by_traces(conn: Connection | Pool, traces: Sequence[str]) -> dict[str, AchEntry]:
    """Return originations by trace number; the latest if a number was used twice."""
    rows = await conn.fetch(_BY_TRACES, traces)
    return {row["trace_number"]: AchEntry(**row) for row in rows}


async def list_to_review(conn: Connection | Pool, limit: int = 100) -> list[AchEntry]:
    """Return the entries that wait for an operator, oldest first."""
    return [AchEntry(**row) for row in await conn.fetch(_TO_REVIEW, limit)]


async def read_history(conn: Connection | Pool, customer_id: UUID, now: datetime) -> OriginationHistory:
    """Return the origination history of a customer, the input of the review."""
    midnight = et_instant(et_date(now), 0)
    row = await conn.fetchrow(
        _HISTORY,
        customer_id,
        midnight,
        now - timedelta(days=HISTORY_DAYS),
        sorted(ADMINISTRATIVE),
        sorted(UNAUTHORISED),
    )
    return OriginationHistory(*row) if row is not None else OriginationHistory()
