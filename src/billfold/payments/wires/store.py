"""Queries of wires, and of the numbers of received messages."""

from collections.abc import Sequence
from datetime import UTC, date, datetime
from typing import NamedTuple
from uuid import UUID

import msgspec

from billfold.accounts.counterparties.store import is_stopped
from billfold.accounts.notes.store import created_between, payment_filters
from billfold.payments.wires.commands import QueuedMessage, ReferencedWire, WireRow
from billfold.platform.database.connection import Connection, Db
from billfold.platform.database.distribution import HEADS_LOCKED
from billfold.platform.database.paging import BY_CREATION, Along, BoundedList
from billfold.platform.database.rows import Table
from billfold.platform.errors import NotFound

_CLOSE_CASE = """
UPDATE wire_case SET status = $3, closed_at = $4, information = coalesce($5, information)
 WHERE direction = $1 AND case_id = $2 AND status = 'OPEN'
"""
_OPEN_CASES = """
SELECT case_id FROM wire_case
 WHERE direction = 'OUTGOING' AND status = 'OPEN' AND case_id = ANY($1::text[])
"""


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


_cases = Table(CaseRow, "wire_case", key=("wire_id", "direction"))
_LIST_CASES = f"""
{_cases.select} WHERE ($1::text IS NULL OR status = $1) ORDER BY opened_at DESC, written_no DESC LIMIT $2
"""
_CASES_OF = f"{_cases.select} WHERE wire_id = $1 AND direction = $2"


async def open_case(conn: Db, case: CaseRow) -> bool:
    """Open a case; False if a case about the wire is already open."""
    return await _cases.insert(conn, case, "ON CONFLICT DO NOTHING")


async def close_case(
    conn: Db, direction: str, case_id: str, status: str, *, now: datetime, information: str | None = None
) -> None:
    """Close a case as ACCEPTED or REFUSED. A closed case is not changed."""
    await conn.execute(_CLOSE_CASE, direction, case_id, status, now, information)


async def find_open_cases(conn: Db, case_ids: Sequence[str]) -> frozenset[str]:
    """Return our cases among these that await an answer."""
    return frozenset(row["case_id"] for row in await conn.fetch(_OPEN_CASES, case_ids))


async def list_cases(conn: Db, *, status: str | None = None, limit: int = 100) -> list[CaseRow]:
    """Return cases, newest first."""
    return await _cases.all(conn, _LIST_CASES, status, limit)


async def list_cases_of(conn: Db, wire_id: UUID, direction: str) -> list[CaseRow]:
    """Return every case about a wire, open or closed."""
    return await _cases.all(conn, _CASES_OF, wire_id, direction)


async def get_open_case(conn: Db, wire_id: UUID, direction: str) -> CaseRow:
    """Return the open case about a wire. Raises NotFound."""
    for case in await list_cases_of(conn, wire_id, direction):
        if case.status == "OPEN":
            return case
    raise NotFound("No such case is open for this wire.")


_STOPPED = is_stopped("w")
_EARLIEST = datetime(2000, 1, 1, tzinfo=UTC)
_IS_PAYMENT = "m.kind = 'pacs.008' AND w.direction = 'OUTGOING'"
_DRAWS_ON_RESERVE = "m.kind IN ('pacs.008', 'pacs.004') AND w.direction = 'OUTGOING' AND w.status = 'PENDING'"
_WIRES_OF = f"""
w AS MATERIALIZED (
  SELECT w.customer_id, w.wire_id, w.pocket_id, w.direction, w.status, {_STOPPED} AS is_stopped
    FROM m JOIN wire w USING (customer_id, wire_id))
"""
_LEAVES = f"""({_IS_PAYMENT} AND (w.status = 'REJECTED' OR w.is_stopped)) IS NOT TRUE
       AND ({{admitted}}::uuid[] IS NULL OR m.message_id = ANY({{admitted}}) OR ({_DRAWS_ON_RESERVE}) IS NOT TRUE)"""
_DUE = f"""
WITH m AS MATERIALIZED (
  SELECT message_id, customer_id, wire_id, kind, send_at FROM wire_message
   WHERE file_id IS NULL AND send_at <= $1 AND (send_at, message_id) > ($4, $5) ORDER BY send_at, message_id LIMIT $2
), {_WIRES_OF}
SELECT m.message_id, m.customer_id, m.send_at, {_LEAVES.format(admitted="$3")} AS leaves
  FROM m LEFT JOIN w USING (customer_id, wire_id) ORDER BY m.send_at, m.message_id
"""
_LOCK_HEADS = f"SELECT customer_id FROM {HEADS_LOCKED}($1)"
_CLAIM = f"""
WITH m AS MATERIALIZED (
  SELECT message_id, customer_id, wire_id, kind, send_at, terms FROM wire_message
   WHERE message_id = ANY($1::uuid[]) AND file_id IS NULL FOR UPDATE SKIP LOCKED
), {_WIRES_OF}
SELECT m.message_id, m.customer_id, m.wire_id, m.kind, m.send_at, m.terms,
       (SELECT p.account_number FROM portal p
         WHERE p.customer_id = w.customer_id AND p.pocket_id = w.pocket_id
           AND p.account_number IS NOT NULL
         ORDER BY p.status DESC, p.created_at, p.written_no LIMIT 1) AS account_number
  FROM m LEFT JOIN w USING (customer_id, wire_id) WHERE {_LEAVES.format(admitted="$2")}
 ORDER BY m.send_at, m.message_id
"""
_TO_REJECT = f"""
SELECT w.customer_id, w.wire_id, k.account_status = 'FROZEN' AS is_frozen
  FROM wire_message m JOIN customer k ON k.customer_id = m.customer_id
  JOIN wire w ON w.customer_id = m.customer_id AND w.wire_id = m.wire_id
 WHERE m.file_id IS NULL AND m.send_at <= $1 AND {_IS_PAYMENT} AND w.status = 'PENDING' AND {_STOPPED}
"""
_NUMBERS = """
INSERT INTO wire_sequence (day, last) VALUES ($1, $2)
ON CONFLICT (day) DO UPDATE SET last = wire_sequence.last + $2 RETURNING last
"""
_SENT = """
UPDATE wire_message m SET imad = n.imad, file_id = $3, sent_at = $4
  FROM unnest($1::uuid[], $2::text[]) AS n(message_id, imad) WHERE m.message_id = n.message_id
"""
_SENT_COLUMNS = """
SELECT m.message_id, m.customer_id, m.wire_id, m.kind, m.imad, m.sent_at, m.terms,
       w.direction, w.wire_type, w.status
  FROM wire_message m LEFT JOIN wire w ON w.customer_id = m.customer_id AND w.wire_id = m.wire_id
"""
_OF_FILE = f"{_SENT_COLUMNS} WHERE m.file_id = $1 ORDER BY m.imad"
_BY_IMAD = f"{_SENT_COLUMNS} WHERE m.imad = ANY($1::text[])"
_LAST = f"""
{_SENT_COLUMNS} WHERE m.wire_id = $1 AND m.kind = ANY($2::text[]) AND m.imad IS NOT NULL
 ORDER BY m.imad DESC LIMIT 1
"""
_QUEUE = f"{Table(QueuedMessage, 'wire_message', key=('message_id',)).insertion} ON CONFLICT DO NOTHING"
_EXPEDITE = "UPDATE wire_message SET send_at = $2 WHERE wire_id = $1 AND file_id IS NULL"


class PendingMessage(NamedTuple):
    """A message that is due. `account_number` is one of the wire's pocket."""

    message_id: UUID
    customer_id: UUID
    wire_id: UUID
    kind: str
    send_at: datetime
    terms: str
    account_number: str | None


class SentMessage(msgspec.Struct, frozen=True):
    """A numbered message, with its wire if there is one."""

    message_id: UUID
    customer_id: UUID
    wire_id: UUID
    kind: str
    imad: str
    sent_at: datetime
    terms: str
    direction: str | None
    wire_type: str | None
    status: str | None


async def list_pending_customers(
    conn: Db, now: datetime, limit: int, *, admitted: Sequence[UUID] | None = None
) -> list[UUID]:
    """Return the customers whose messages are due next; of customers' wires only those `admitted`, if given."""
    return list({customer_id for _, customer_id in await _list_due(conn, now, limit, admitted)})


async def claim_pending(
    conn: Connection, now: datetime, limit: int, *, admitted: Sequence[UUID] | None = None
) -> list[PendingMessage]:
    """Return due messages, locked until the transaction ends; of customers' wires only those `admitted`, if given.

    The ledger heads of their customers are locked first, so that no wire is cancelled in the meantime.
    """
    due = await _list_due(conn, now, limit, admitted)
    await conn.execute(_LOCK_HEADS, sorted({customer_id for _, customer_id in due}))
    return [PendingMessage(*row) for row in await conn.fetch(_CLAIM, [message_id for message_id, _ in due], admitted)]


async def _list_due(conn: Db, now: datetime, limit: int, admitted: Sequence[UUID] | None) -> list[tuple[UUID, UUID]]:
    """Return the first messages to send, each with its customer. Those that must not leave stay in between."""
    due: list[tuple[UUID, UUID]] = []
    place = (_EARLIEST, UUID(int=0))
    while len(due) < limit:
        rows = await conn.fetch(_DUE, now, limit, admitted, *place)
        due += [(row["message_id"], row["customer_id"]) for row in rows if row["leaves"]]
        if len(rows) < limit:
            break
        place = (rows[-1]["send_at"], rows[-1]["message_id"])
    return due[:limit]


async def list_stopped(conn: Db, now: datetime) -> list[tuple[UUID, UUID, bool]]:
    """Return customer and id of the due wires that must not leave, and whether the customer is frozen."""
    rows = await conn.fetch(_TO_REJECT, now)
    return [(row["customer_id"], row["wire_id"], row["is_frozen"]) for row in rows]


async def allocate_numbers(conn: Connection, day: date, count: int) -> range:
    """Return the next sequence numbers of this Fedwire business day."""
    last: int = await conn.fetchval(_NUMBERS, day, count)
    return range(last - count + 1, last + 1)


async def mark_sent(conn: Connection, messages: Sequence[tuple[UUID, str]], file_id: UUID, now: datetime) -> None:
    """Record the IMADs of messages and their file."""
    ids, imads = zip(*messages, strict=True)
    await conn.execute(_SENT, ids, imads, file_id, now)


async def list_of_file(conn: Db, file_id: UUID) -> list[SentMessage]:
    """Return the messages of an outbound file, in order."""
    return [SentMessage(*row) for row in await conn.fetch(_OF_FILE, file_id)]


async def find_sent(conn: Db, imads: Sequence[str]) -> dict[str, SentMessage]:
    """Return our messages with these IMADs."""
    return {row["imad"]: SentMessage(*row) for row in await conn.fetch(_BY_IMAD, imads)}


async def find_last_sent(conn: Db, wire_id: UUID, kinds: Sequence[str]) -> SentMessage | None:
    """Return the last message of these kinds that was sent about a wire."""
    row = await conn.fetchrow(_LAST, wire_id, kinds)
    return None if row is None else SentMessage(*row)


async def enqueue(conn: Db, message: QueuedMessage) -> None:
    """Queue a message. An existing message with this id is not changed."""
    await conn.execute(_QUEUE, *msgspec.structs.astuple(message))


async def expedite(conn: Db, wire_id: UUID, now: datetime) -> bool:
    """Make queued messages about a wire due now; return whether there were any."""
    return str(await conn.execute(_EXPEDITE, wire_id, now)) != "UPDATE 0"


_wires = Table(WireRow, "wire w", key=("w.customer_id", "w.wire_id"), noun="wire")
_stored = Table(WireRow)
_WIRE = _wires.columns("w")
_CHARGES = "coalesce(({message}->>'charges')::bigint, 0)"
_WITH_OUTSTANDING = f"""
WITH w AS MATERIALIZED (
  SELECT w.* FROM wire w WHERE {{condition}}
), back AS MATERIALIZED (
  SELECT customer_id, original_wire_id, amount + {_CHARGES.format(message="message::json")} AS cents
    FROM wire
   WHERE customer_id = ANY(ARRAY(SELECT customer_id FROM w)) AND original_wire_id = ANY(ARRAY(SELECT wire_id FROM w))
     AND original_wire_id IS NOT NULL AND status <> 'REJECTED' -- as the index has them
), held AS MATERIALIZED (
  SELECT item_id, details->>'original_wire_id' AS original, amount + {_CHARGES.format(message="(details->'message')")}
         AS cents
    FROM suspense_item
   WHERE details->>'original_wire_id' = ANY(ARRAY(SELECT wire_id::text FROM w))
     AND details->>'original_wire_id' IS NOT NULL
), given AS MATERIALIZED (
  SELECT customer_id, wire_id, original_wire_id FROM wire
   WHERE customer_id = ANY(ARRAY(SELECT customer_id FROM w)) AND wire_id = ANY(ARRAY(SELECT item_id FROM held))
)
"""
_OUTSTANDING = """(w.amount
  - (SELECT coalesce(sum(r.cents), 0) FROM back r
      WHERE r.customer_id = w.customer_id AND r.original_wire_id = w.wire_id)
  - (SELECT coalesce(sum(s.cents), 0) FROM held s
      WHERE s.original = w.wire_id::text
        AND NOT EXISTS (SELECT 1 FROM given b WHERE b.customer_id = w.customer_id
                           AND b.wire_id = s.item_id AND b.original_wire_id = w.wire_id)))::bigint"""
"""The part of a wire that has not come back: neither to its Pocket nor to suspense, nor as charges."""
_THESE = "w.customer_id = ANY($1::uuid[]) AND w.wire_id = ANY($2::uuid[])"
_REFERENCED = f"""{_WITH_OUTSTANDING.format(condition=_THESE)}
SELECT {_WIRE}, {_OUTSTANDING} AS outstanding, last_reversal(w.customer_id, w.entry_no) AS stands_in,
       EXISTS (SELECT 1 FROM wire_message m WHERE m.customer_id = w.customer_id AND m.wire_id = w.wire_id
                  AND m.kind LIKE 'pacs.%' AND m.file_id IS NOT NULL) AS is_in_file FROM w
"""
_OPEN_WIRES = f"""
SELECT DISTINCT ON (w.customer_id, w.pocket_id) {_WIRE} FROM wire w
 WHERE w.customer_id = ANY($1::uuid[]) AND w.direction = 'OUTGOING' AND w.status IN ('PENDING', 'PROCESSING')
 ORDER BY w.customer_id, w.pocket_id
"""
_FIND = f"""
WITH d AS MATERIALIZED (SELECT customer_id, object_id FROM directory WHERE kind = 'wire' AND value = $1)
SELECT {_WIRE} FROM d JOIN wire w ON w.customer_id = d.customer_id AND w.wire_id = d.object_id
"""
_GET_OUTSTANDING = f"""{_WITH_OUTSTANDING.format(condition="w.customer_id = $1 AND w.wire_id = $2")}
SELECT {_OUTSTANDING} FROM w"""
_ARRIVED = """
SELECT a.number, f.name FROM received_wire_message a JOIN rail_file f USING (file_id)
 WHERE a.number = ANY($1::text[]) AND a.file_id <> $2
"""
_RECORD_ARRIVED = """
INSERT INTO received_wire_message (number, file_id, arrived_at)
SELECT number, $2, $3 FROM unnest($1::text[]) AS number ON CONFLICT DO NOTHING
"""
_BY_UETR = f"""{_WITH_OUTSTANDING.format(condition="w.uetr = ANY($1::text[]) AND w.wire_type = 'PAYMENT'")}
SELECT w.customer_id, w.wire_id, w.direction, w.status, w.amount, w.uetr, w.imad, {_OUTSTANDING} AS outstanding
  FROM w ORDER BY w.status = 'REJECTED' DESC
"""


class MatchedWire(NamedTuple):
    """A wire that a message may refer to, and its amount not returned."""

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
    """Return the wires of these customers among the ids, for rules."""
    referenced = []
    for row in await conn.fetch(_REFERENCED, customer_ids, ids):
        wire = _wires.read(row)
        seen = ReferencedWire(wire, row["outstanding"], row["stands_in"], row["is_in_file"])
        referenced.append((wire.customer_id, wire.wire_id, seen))
    return referenced


async def load_open_wires(
    conn: Connection, customer_ids: Sequence[UUID], ids: Sequence[UUID]
) -> list[tuple[UUID, UUID, WireRow]]:
    """Return one wire in process of each Pocket that has any."""
    del ids
    return [(each.customer_id, each.wire_id, each) for each in await _wires.all(conn, _OPEN_WIRES, customer_ids)]


get_wire = _stored.get


async def find_wire(conn: Db, wire_id: UUID) -> WireRow | None:
    """Return the wire of any customer, or None."""
    return await _wires.first(conn, _FIND, str(wire_id))


async def get_outstanding(conn: Db, wire: WireRow) -> int:
    """Return the cents of a wire that have not been returned."""
    outstanding: int = await conn.fetchval(_GET_OUTSTANDING, wire.customer_id, wire.wire_id)
    return outstanding


async def find_arrived(conn: Db, numbers: Sequence[str], file_id: UUID) -> dict[str, str]:
    """Return the numbers that were received in another file, with its name."""
    rows = await conn.fetch(_ARRIVED, numbers, file_id)
    return {row["number"]: row["name"] for row in rows}


async def record_arrived(conn: Db, numbers: Sequence[str], file_id: UUID, now: datetime) -> None:
    """Record that these messages were received in this file."""
    await conn.execute(_RECORD_ARRIVED, numbers, file_id, now)


async def find_payments(conn: Db, uetrs: Sequence[str]) -> dict[tuple[str, str], MatchedWire]:
    """Return the payments with these UETRs, by direction and UETR.

    If a rejected payment was booked to another account later, that one is returned.
    """
    rows = await conn.fetch(_BY_UETR, uetrs)
    return {(row["direction"], row["uetr"]): MatchedWire(*row) for row in rows}


_OWNERS = ("customer_id", "partner_id")


def _list(owner: str, selected: str, then: str = "", *places: int) -> BoundedList[WireRow]:
    return BoundedList(
        f"""SELECT * FROM ({selected}.{owner} = $1) w
 WHERE ($2::uuid IS NULL OR w.pocket_id = $2) AND ($3::text IS NULL OR w.direction = $3)
   AND ($4::text[] IS NULL OR w.status = ANY($4)) AND {payment_filters("w", "wire_id", 5)} AND {{page}}""",
        _wires.read,
        Along(f"wire WHERE {owner} = $1 AND {created_between(2)}{then}", places=(0, 4, 5, *places)),
        **BY_CREATION,
    )


LISTS = {owner: _list(owner, f"SELECT {_WIRE}, w.written_no FROM wire w WHERE w") for owner in _OWNERS}
LISTS_THEN = {
    owner: _list(owner, f"{_stored.select_as_of('$11', 'written_no')} AND wire", " AND created_at <= $4", 10)
    for owner in _OWNERS
}
"""The wires of an owner, by Pocket, direction, statuses and `payment_filters`; None does not filter."""
