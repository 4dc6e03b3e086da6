"""Queries of wires, and of the numbers of messages that were received."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from billfold.payments.wires.types import ReferencedWire, WireRow
from billfold.platform.database.connection import Connection, Pool
from billfold.platform.database.paging import BY_CREATION, Along, BoundedList
from billfold.platform.database.rows import reads
from billfold.platform.errors import NotFound

_row = reads(WireRow)
_COLUMNS = ", ".join(f"w.{name}" for name in WireRow.__struct_fields__)
_OUTSTANDING = """(w.amount
  - (SELECT coalesce(sum(r.amount + coalesce((r.message::json->>'charges')::bigint, 0)), 0) FROM wire r
      WHERE r.customer_id = w.customer_id AND r.original_wire_id = w.wire_id AND r.status <> 'REJECTED')
  - (SELECT coalesce(sum(s.amount + coalesce((s.details->'message'->>'charges')::bigint, 0)), 0) FROM suspense_item s
      WHERE s.details->>'original_wire_id' = w.wire_id::text
        AND NOT EXISTS (SELECT 1 FROM wire b WHERE b.customer_id = w.customer_id
                           AND b.wire_id = s.item_id AND b.original_wire_id = w.wire_id)))::bigint"""
"""What of a wire has not come back: neither to its Pocket nor to suspense, nor as charges."""
_BOOKED_JOURNAL = """
WITH RECURSIVE undone AS (
  SELECT w.entry_no
   UNION ALL
  SELECT j.entry_no FROM undone u
    JOIN journal_entry j ON j.customer_id = w.customer_id AND j.reverses = u.entry_no
) SELECT max(entry_no) FROM undone
"""
_REFERENCED = f"""
SELECT {_COLUMNS}, {_OUTSTANDING} AS outstanding, ({_BOOKED_JOURNAL}) AS stands_in FROM wire w
 WHERE w.customer_id = ANY($1::uuid[]) AND w.wire_id = ANY($2::uuid[])
"""
_OPEN = f"""
SELECT DISTINCT ON (w.customer_id, w.pocket_id) {_COLUMNS} FROM wire w
 WHERE w.customer_id = ANY($1::uuid[]) AND w.direction = 'OUTGOING' AND w.status IN ('PENDING', 'PROCESSING')
 ORDER BY w.customer_id, w.pocket_id
"""
_GET = f"SELECT {_COLUMNS} FROM wire w WHERE w.customer_id = $1 AND w.wire_id = $2"
_FIND = f"""
SELECT {_COLUMNS} FROM directory d
  JOIN wire w ON w.customer_id = d.customer_id AND w.wire_id = d.object_id
 WHERE d.kind = 'wire' AND d.value = $1
"""
_GET_OUTSTANDING = f"SELECT {_OUTSTANDING} FROM wire w WHERE w.customer_id = $1 AND w.wire_id = $2"
_ARRIVED = """
SELECT a.number, f.name FROM received_wire_message a JOIN rail_file f USING (file_id)
 WHERE a.number = ANY($1::text[]) AND a.file_id <> $2
"""
_RECORD_ARRIVED = """
INSERT INTO received_wire_message (number, file_id, arrived_at)
SELECT number, $2, $3 FROM unnest($1::text[]) AS number ON CONFLICT DO NOTHING
"""
_BY_UETR = f"""
SELECT w.customer_id, w.wire_id, w.direction, w.status, w.amount, w.uetr, w.imad, {_OUTSTANDING} AS outstanding
  FROM wire w WHERE w.uetr = ANY($1::text[]) AND w.wire_type = 'PAYMENT'
 ORDER BY w.status = 'REJECTED' DESC
"""


class MatchedWire(NamedTuple):
    """A wire that a message may refer to, and what of it has not come back."""

    customer_id: UUID
    wire_id: UUID
    direction: str
    status: str
    amount: int
    uetr: str
    imad: str | None
    outstanding: int


async def load_references(
    conn: Connection, customer_ids: Sequence[UUID], ids: Sequence[UUID]
) -> list[tuple[UUID, UUID, ReferencedWire]]:
    """Return the wires of these customers among the ids, as rules see them."""
    referenced = []
    for row in await conn.fetch(_REFERENCED, customer_ids, ids):
        wire = _row(row)
        referenced.append((wire.customer_id, wire.wire_id, ReferencedWire(wire, row["outstanding"], row["stands_in"])))
    return referenced


async def load_open_wires(
    conn: Connection, customer_ids: Sequence[UUID], ids: Sequence[UUID]
) -> list[tuple[UUID, UUID, WireRow]]:
    """Return one wire in process of each Pocket that has any."""
    del ids
    wires = [_row(row) for row in await conn.fetch(_OPEN, customer_ids)]
    return [(wire.customer_id, wire.wire_id, wire) for wire in wires]


async def get_wire(conn: Connection | Pool, customer_id: UUID, wire_id: UUID) -> WireRow:
    """Return the customer's wire. Raises NotFound."""
    row = await conn.fetchrow(_GET, customer_id, wire_id)
    if row is None:
        raise NotFound("There is no such wire.")
    return _row(row)


async def find_wire(conn: Connection | Pool, wire_id: UUID) -> WireRow | None:
    """Return the wire of any customer, or None."""
    row = await conn.fetchrow(_FIND, str(wire_id))
    return None if row is None else _row(row)


async def get_outstanding(conn: Connection | Pool, wire: WireRow) -> int:
    """Return the cents of a wire that have not come back."""
    outstanding: int = await conn.fetchval(_GET_OUTSTANDING, wire.customer_id, wire.wire_id)
    return outstanding


async def find_arrived(conn: Connection | Pool, numbers: Sequence[str], file_id: UUID) -> dict[str, str]:
    """Return the numbers that were received in another file, with its name."""
    rows = await conn.fetch(_ARRIVED, numbers, file_id)
    return {row["number"]: row["name"] for row in rows}


async def record_arrived(conn: Connection | Pool, numbers: Sequence[str], file_id: UUID, now: datetime) -> None:
    """Record that these messages were received in this file."""
    await conn.execute(_RECORD_ARRIVED, numbers, file_id, now)


async def find_payments(conn: Connection | Pool, uetrs: Sequence[str]) -> dict[tuple[str, str], MatchedWire]:
    """Return the payments with these UETRs, by direction and UETR.

    If a rejected payment was booked to another account later, that one is returned.
    """
    rows = await conn.fetch(_BY_UETR, uetrs)
    return {(row["direction"], row["uetr"]): MatchedWire(*row) for row in rows}


LISTS = {
    owner: BoundedList(
        f"""SELECT {_COLUMNS}, w.written_no FROM wire w
 WHERE w.{owner} = $1 AND ($2::uuid IS NULL OR w.pocket_id = $2) AND ($3::text IS NULL OR w.direction = $3)
   AND {{page}}""",
        _row,
        Along(f"wire WHERE {owner} = $1"),
        **BY_CREATION,
    )
    for owner in ("customer_id", "partner_id")
}
"""The wires of an owner, by Pocket and direction; None does not filter."""
