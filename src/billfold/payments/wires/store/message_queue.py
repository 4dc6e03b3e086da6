"""The queue of outbound messages: claimed, numbered, and found by their numbers."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

import msgspec

from billfold.accounts.counterparties.store import is_stopped
from billfold.payments.wires.types import QueuedMessage

if TYPE_CHECKING:
    from billfold.platform.database.connection import (Connection, Pool)

_STOPPED = is_stopped("w")
_IS_PAYMENT = "m.kind = 'pacs.008' AND w.direction = 'OUTGOING'"
_PENDING = f"""
SELECT m.message_id, m.customer_id, m.wire_id, m.kind, m.send_at, m.terms,
       (SELECT p.account_number FROM portal p
         WHERE p.customer_id = w.customer_id AND p.pocket_id = w.pocket_id
           AND p.account_number IS NOT NULL
         ORDER BY p.status DESC, p.created_at, p.written_no LIMIT 1) AS account_number
  FROM wire_message m LEFT JOIN wire w ON w.customer_id = m.customer_id AND w.wire_id = m.wire_id
 WHERE m.file_id IS NULL AND m.send_at <= $1
   AND ({_IS_PAYMENT} AND (w.status = 'REJECTED' OR {_STOPPED})) IS NOT TRUE
 ORDER BY m.send_at, m.message_id LIMIT $2 FOR UPDATE OF m SKIP LOCKED
"""
_PENDING_CUSTOMERS = """
SELECT DISTINCT customer_id FROM (
  SELECT customer_id FROM wire_message WHERE file_id IS NULL AND send_at <= $1
   ORDER BY send_at, message_id LIMIT $2) due
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
_QUEUE = """
INSERT INTO wire_message (message_id, customer_id, wire_id, kind, send_at, terms)
VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING
"""
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


async def list_pending_customers(conn: Connection | Pool, now: datetime, limit: int) -> list[UUID]:
    """Return whose messages are due next."""
    return [row["customer_id"] for row in await conn.fetch(_PENDING_CUSTOMERS, now, limit)]


async def claim_pending(conn: Connection, now: datetime, limit: int) -> list[PendingMessage]:
    """Return due messages, locked until the transaction ends."""
    return [PendingMessage(*row) for row in await conn.fetch(_PENDING, now, limit)]


async def list_stopped(conn: Connection | Pool, now: datetime) -> list[tuple[UUID, UUID, bool]]:
    """Return customer and id of the wires that are due and may not leave, and whether the customer is frozen."""
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


async def list_of_file(conn: Connection | Pool, file_id: UUID) -> list[SentMessage]:
    """Return the messages of an outbound file, in order."""
    return [SentMessage(*row) for row in await conn.fetch(_OF_FILE, file_id)]


async def find_sent(conn: Connection | Pool, imads: Sequence[str]) -> dict[str, SentMessage]:
    """Return our messages with these IMADs."""
    return {row["imad"]: SentMessage(*row) for row in await conn.fetch(_BY_IMAD, imads)}


async def find_last_sent(conn: Connection | Pool, wire_id: UUID, kinds: Sequence[str]) -> SentMessage | None:
    """Return the last message of these kinds that was sent about a wire."""
    row = await conn.fetchrow(_LAST, wire_id, kinds)
    return None if row is None else SentMessage(*row)


async def enqueue(conn: Connection | Pool, message: QueuedMessage) -> None:
    """Queue a message. A message with this id that exists stays unchanged."""
    await conn.execute(_QUEUE, *msgspec.structs.astuple(message))


async def expedite(conn: Connection | Pool, wire_id: UUID, now: datetime) -> bool:
    """Make queued messages about a wire due now; tell whether there were any."""
    return str(await conn.execute(_EXPEDITE, wire_id, now)) != "UPDATE 0"
