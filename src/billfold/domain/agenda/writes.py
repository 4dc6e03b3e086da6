"""Making and cancelling appointments. One kind has one appointment per object."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from billfold.kit.db import listed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from billfold.kit.db import Connection, Pool

_MAKE = """
INSERT INTO agenda (kind, object_id, customer_id, at)
SELECT DISTINCT ON (kind, object_id) *
  FROM unnest($1::agenda[])
 ORDER BY kind, object_id, at
ON CONFLICT (kind, object_id) DO UPDATE SET at = excluded.at
"""
# One look by key for each, in one order, as whoever keeps appointments lets go of them: the table
# fills and empties too fast for its statistics, and two must never wait for each other.
_CANCEL = """
DELETE FROM agenda WHERE ctid = ANY(ARRAY(
     SELECT a.ctid FROM unnest($2::text::uuid[]) AS k(object_id)
      CROSS JOIN LATERAL (SELECT b.ctid FROM agenda b
                           WHERE b.kind = $1 AND b.object_id = k.object_id FOR UPDATE) a))
"""


class Appointment(NamedTuple):
    """What kind of thing is to be done with which object of which customer, and when."""

    kind: str
    object_id: UUID
    customer_id: UUID | None
    at: datetime


async def make(conn: Connection | Pool, appointments: Iterable[Appointment]) -> None:
    """Make these appointments; one that is there already is moved."""
    if made := list(appointments):
        await conn.execute(_MAKE, made)


async def cancel(conn: Connection | Pool, kind: str, *object_ids: UUID) -> None:
    """Cancel the appointments of this kind with these objects, as far as they have been made."""
    await conn.execute(_CANCEL, kind, listed(sorted(object_ids)))
