"""Making and cancelling appointments. One kind has one appointment per object."""

from __future__ import annotations

from typing import TYPE_CHECKING

from billfold.platform.database.pool import listed

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from uuid import UUID

    from billfold.ledger.jobs.types import Appointment
    from billfold.platform.database.pool import Connection, Pool

_MAKE = """
INSERT INTO agenda (kind, object_id, customer_id, at)
SELECT DISTINCT ON (kind, object_id) *
  FROM unnest($1::agenda[])
 ORDER BY kind, object_id, at
ON CONFLICT (kind, object_id) DO UPDATE SET at = excluded.at
"""
_LET_GO = "SELECT agenda_let_go($1, $2::text::uuid[], $3)"


async def make(conn: Connection | Pool, appointments: Iterable[Appointment]) -> None:
    """Make these appointments; one that is there already is moved."""
    if made := list(appointments):
        await conn.execute(_MAKE, made)


async def cancel(conn: Connection | Pool, kind: str, *object_ids: UUID) -> None:
    """Cancel the appointments of this kind with these objects, as far as they have been made."""
    await conn.execute(_LET_GO, kind, listed(object_ids), None)


async def let_go(conn: Connection | Pool, kept: Sequence[Appointment]) -> None:
    """Let go of appointments of one kind that were kept; one that was moved meanwhile stays."""
    if kept:
        objects, instants = listed(each.object_id for each in kept), [each.at for each in kept]
        await conn.execute(_LET_GO, kept[0].kind, objects, instants)
