"""The bank's clock in the database, which a sandbox can set forward."""

from asyncpg import Record

from billfold.platform.clock import ClockState, ClockWouldGoBack
from billfold.platform.database.connection import Connection, Db

CLOCK_LOCK = 0x636C6F63  # "cloc"
"""The key of the lock that bookings share until they are committed on all nodes: alone for a new clock or a cut."""


_READ = "select business_anchor, wall_anchor, frozen from clock"


HOLD_CLOCK = f"""
select business_anchor, wall_anchor, frozen from pg_advisory_xact_lock_shared({CLOCK_LOCK}) left join clock on true
"""
"""The clock, locked until the transaction ends: one row, of nulls if the bank runs on wall time."""


_WRITE = """
insert into clock as c (singleton, business_anchor, wall_anchor, frozen)
select true, $1, $2, $3 from pg_advisory_xact_lock($4)
on conflict (singleton) do update
   set business_anchor = excluded.business_anchor,
       wall_anchor = excluded.wall_anchor,
       frozen = excluded.frozen
 where c.business_anchor <= excluded.business_anchor
returning true
"""


async def read_clock(conn: Db, *, hold: bool = False) -> ClockState | None:
    """Return the settable clock, or None if the bank runs on wall time.

    `hold` keeps others from setting it until the transaction ends: bookings made by it are never
    more than one step behind it.
    """
    row = await conn.fetchrow(HOLD_CLOCK if hold else _READ)
    return None if row is None else clock_of_row(row)


def clock_of_row(row: Record) -> ClockState | None:
    """Return the clock of a row with its columns, which are null if the bank runs on wall time."""
    if row["business_anchor"] is None:
        return None
    return ClockState(row["business_anchor"], row["wall_anchor"], row["frozen"])


async def write_clock(conn: Connection, state: ClockState) -> None:
    """Make this the bank's clock. Raises ClockWouldGoBack if another was set further ahead."""
    anchors = (state.business_anchor, state.wall_anchor, state.frozen)
    written = await conn.fetchval(_WRITE, *anchors, CLOCK_LOCK)
    if written is None:
        current = await conn.fetchval("select business_anchor from clock")
        raise ClockWouldGoBack(current, state.business_anchor)
