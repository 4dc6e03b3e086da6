"""Received message numbers, and the wires that messages may refer to."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

if TYPE_CHECKING:
    from billfold.platform.database.pool import Connection, Pool

_ARRIVED = """
SELECT a.number, f.name FROM received_wire_message a JOIN rail_file f USING (file_id)
 WHERE a.number = ANY($1::text[]) AND a.file_id <> $2
"""
_INSERT = """
INSERT INTO received_wire_message (number, file_id, arrived_at)
SELECT number, $2, $3 FROM unnest($1::text[]) AS number ON CONFLICT DO NOTHING
"""
_BY_UETR = """
SELECT w.customer_id, w.wire_id, w.direction, w.status, w.amount, w.uetr, w.imad, EXISTS (
         SELECT 1 FROM wire r WHERE r.customer_id = w.customer_id
            AND r.original_wire_id = w.wire_id AND r.status <> 'REJECTED') AS returned
  FROM wire w WHERE w.uetr = ANY($1::text[]) AND w.wire_type = 'PAYMENT'
 ORDER BY w.status = 'REJECTED' DESC
"""


class MatchedWire(NamedTuple):
    """A wire that a message may refer to. `returned`: it is already returned."""

    customer_id: UUID
    wire_id: UUID
    direction: str
    status: str
    amount: int
    uetr: str
    imad: str | None
    returned: bool


async def find_arrived(conn: Connection | Pool, numbers: Sequence[str], file_id: UUID) -> dict[str, str]:
    """Return the numbers that were received in another file, with its name."""
    rows = await conn.fetch(_ARRIVED, numbers, file_id)
    return {row["number"]: row["name"] for row in rows}


async def record_arrived(conn: Connection | Pool, numbers: Sequence[str], file_id: UUID, now: datetime) -> None:
    """Record that these messages were received in this file."""
    await conn.execute(_INSERT, numbers, file_id, now)


async def find_payments(conn: Connection | Pool, uetrs: Sequence[str]) -> dict[tuple[str, str], MatchedWire]:
    """Return the payments with these UETRs, by direction and UETR.

    If a rejected payment was booked to another account later, that one is returned.
    """
    rows = await conn.fetch(_BY_UETR, uetrs)
    return {(row["direction"], row["uetr"]): MatchedWire(*row) for row in rows}
