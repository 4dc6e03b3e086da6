"""Queries of holds that callers placed."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from billfold.accounts.holds.commands import PlacedHold
from billfold.platform.database.connection import Connection, Db
from billfold.platform.database.former_rows import as_was
from billfold.platform.database.paging import BY_CREATION, KeysetList
from billfold.platform.database.rows import References, Table

_holds = Table(PlacedHold)
HOLDS, HOLDS_THEN = (
    KeysetList(
        f"""{selected} customer_id = $1 AND pocket_id = $2 AND hold.status IS NOT NULL
   AND ($3::text[] IS NULL OR {status} = ANY($3)) AND {{page}}""",
        _holds.read,
        **BY_CREATION,
    )
    for selected, status in (
        (f"SELECT {_holds.columns()}, written_no FROM hold WHERE", "status"),
        (f"{_holds.select_as_of('$4', 'written_no')} AND", f"{as_was('hold')}.status"),
    )
)
"""Holds of a Pocket, in some statuses or in all, newest first."""
_PLACED = "customer_id = $1 AND pocket_id = $2 AND hold_id = $3 AND hold.status IS NOT NULL"
_REFERENCED = (
    f"{_holds.select} WHERE customer_id = ANY($1::uuid[]) AND hold_id = ANY($2::uuid[]) AND status IS NOT NULL"
)


async def get_hold(
    conn: Db, customer_id: UUID, pocket_id: UUID, hold_id: UUID, as_of: datetime | None = None
) -> PlacedHold:
    """Return a hold of a Pocket. Raises NotFound; also for that of a collection, which nobody placed."""
    selected, then = (f"{_holds.select} WHERE", ()) if as_of is None else (f"{_holds.select_as_of('$4')} AND", (as_of,))
    return await _holds.one(conn, f"{selected} {_PLACED}", customer_id, pocket_id, hold_id, *then)


async def load_references(conn: Connection, customer_ids: Sequence[UUID], ids: Sequence[UUID]) -> References:
    """Return the holds of these customers among the ids."""
    return [(row.customer_id, row.hold_id, row) for row in await _holds.all(conn, _REFERENCED, customer_ids, ids)]
