"""Sessions and messages in the database: a number moves only for the process that has the session."""

from collections.abc import Collection, Sequence
from datetime import date, datetime
from enum import StrEnum
from typing import Final
from uuid import UUID

import msgspec

from billfold.platform import ids
from billfold.platform.clock import wall_now
from billfold.platform.database.connection import Db, Pool
from billfold.platform.database.rows import Table
from billfold.platform.errors import NotFound
from billfold.trading.fix.codec import Message
from billfold.trading.fix.session import SESSION_TYPES, SentMessage


class MessageStatus(StrEnum):
    """HELD and REFUSED need a person. A HELD one is closed when its execution is booked, or like the others."""

    SENT = "SENT"
    NEW = "NEW"
    DONE = "DONE"
    HELD = "HELD"
    REFUSED = "REFUSED"
    CLOSED = "CLOSED"


class StoredMessage(msgspec.Struct, frozen=True):
    """A message as received or sent."""

    message_id: UUID
    dealer: str
    seq: int
    type: str
    order_id: UUID | None
    content: str
    received_at: datetime
    status: str
    reason: str | None

    @property
    def shown(self) -> str:
        """The content as people read it."""
        return self.content.replace("\x01", "|")


class SessionState(msgspec.Struct, frozen=True):
    """A session for operators."""

    dealer: str
    session_day: date
    next_in: int
    next_out: int
    is_on: bool
    problem: str | None
    changed_at: datetime


class SessionLost(Exception):
    """Another process has taken the session, or its numbers have moved: nothing was kept."""


_messages = Table(StoredMessage, "dealer_message", key=("message_id",))
_sessions = Table(SessionState, "dealer_session", key=("dealer",))
_TAKE = """
INSERT INTO dealer_session AS s (dealer, owner_id, session_day, next_in, next_out, is_on, changed_at)
VALUES ($1, $2, $3, 1, 1, false, $4)
ON CONFLICT (dealer) DO UPDATE
   SET owner_id = $2, is_on = false, changed_at = $4, session_day = $3,
       problem = CASE s.session_day WHEN $3 THEN s.problem END,
       next_in = CASE s.session_day WHEN $3 THEN s.next_in ELSE 1 END,
       next_out = CASE s.session_day WHEN $3 THEN s.next_out ELSE 1 END
RETURNING next_in, next_out
"""
_MOVE_IN = "UPDATE dealer_session SET next_in = $4 WHERE dealer = $1 AND owner_id = $2 AND next_in = $3 RETURNING 1"
_MOVE_OUT = (
    "UPDATE dealer_session SET next_out = $3 + 1 WHERE dealer = $1 AND owner_id = $2 AND next_out = $3 RETURNING 1"
)
_RESET = "UPDATE dealer_session SET next_in = 1, next_out = 1 WHERE dealer = $1 AND owner_id = $2 RETURNING 1"
_RESET_OFF = "UPDATE dealer_session SET next_in = 1, next_out = 1 WHERE dealer = $1 AND NOT is_on RETURNING 1"
_KEEP = """
WITH moved AS ({move})
INSERT INTO dealer_message
  (message_id, dealer, session_day, is_inbound, seq, type, order_id, content, received_at, status)
SELECT {values} FROM moved RETURNING 1
"""
_KEEP_IN = _KEEP.format(move=_MOVE_IN, values="$5, $1, $6, true, $3, $7, NULL::uuid, $8, $9, 'NEW'")
_KEEP_OUT = _KEEP.format(move=_MOVE_OUT, values="$4, $1, $5, false, $3, $6, $7::uuid, $8, $9, 'SENT'")
_NOTE = """
UPDATE dealer_session SET is_on = $3, problem = coalesce($4, problem), changed_at = $5
 WHERE dealer = $1 AND owner_id = $2
"""
_SENT = """
SELECT seq, type, content FROM dealer_message
 WHERE dealer = $1 AND session_day = $2 AND NOT is_inbound AND seq BETWEEN $3 AND $4
   AND type = ANY($5::text[]) ORDER BY received_at, seq
"""
_NEW = f"{_messages.select} WHERE dealer = $1 AND status = 'NEW' ORDER BY received_at, seq"
_OF_NUMBER = f"""
{_messages.select} WHERE dealer = $1 AND seq = $2 AND NOT is_inbound
   AND session_day = (SELECT session_day FROM dealer_message WHERE message_id = $3) ORDER BY received_at DESC LIMIT 1
"""
_SETTLE = "UPDATE dealer_message SET status = $2, reason = $3, order_id = $4, reference = $5 WHERE message_id = $1"
# What a person books under the reference of a held message closes it.
OPEN_IN_SQL: Final = """
status IN ('HELD', 'REFUSED') AND (status <> 'HELD' OR (dealer, reference) NOT IN (
  SELECT e.dealer, e.reference FROM execution e WHERE e.reference = ANY(ARRAY(
    SELECT reference FROM dealer_message WHERE status = 'HELD' AND reference IS NOT NULL))) IS NOT FALSE)
"""
_OPEN = f"{_messages.select} WHERE {OPEN_IN_SQL} ORDER BY received_at LIMIT $1"
_CLOSE = """
UPDATE dealer_message SET status = 'CLOSED' WHERE message_id = $1 AND status IN ('HELD', 'REFUSED') RETURNING 1
"""
_OF_ORDER = f"{_messages.select} WHERE order_id = $1 ORDER BY received_at, seq LIMIT $2"
_CANCELS = "SELECT order_id FROM dealer_message WHERE type = 'F' AND order_id = ANY($1::uuid[])"


class DatabaseJournal:
    """The journal of a session of a day that this process has taken."""

    def __init__(self, pool: Pool, dealer: str, day: date, *, owner_id: UUID, numbers: tuple[int, int]) -> None:
        self._pool, self._dealer, self._day, self._owner_id = pool, dealer, day, owner_id
        self.next_in, self.next_out = numbers

    @classmethod
    async def take(cls, pool: Pool, dealer: str, day: date, owner_id: UUID) -> "DatabaseJournal":
        """Take a session from another process; on another day its numbers begin again."""
        row = await pool.fetchrow(_TAKE, dealer, owner_id, day, wall_now())
        assert row is not None
        return cls(pool, dealer, day, owner_id=owner_id, numbers=(row["next_in"], row["next_out"]))

    async def keep_out(self, kind: str, frame: bytes, *, about: str | None) -> None:
        """Keep what is sent next. Raises SessionLost."""
        named = self._dealer, self._owner_id, self.next_out
        if kind in SESSION_TYPES:
            await self._require(_MOVE_OUT, *named)
        else:
            text = frame.decode()
            kept = ids.new(), self._day, kind, None if about is None else UUID(about), text, wall_now()
            await self._require(_KEEP_OUT, *named, *kept)
        self.next_out += 1

    async def keep_in(self, message: Message, *, until: int) -> None:
        """Keep a message that was received. Raises SessionLost."""
        named = self._dealer, self._owner_id, self.next_in, until
        if message.type in SESSION_TYPES:
            await self._require(_MOVE_IN, *named)
        else:
            kept = ids.new(), self._day, message.type[:8], message.text, wall_now()
            await self._require(_KEEP_IN, *named, *kept)
        self.next_in = until

    async def reset(self) -> None:
        """Begin both numbers at 1 again. Raises SessionLost."""
        await self._require(_RESET, self._dealer, self._owner_id)
        self.next_in = self.next_out = 1

    async def list_sent(self, first: int, last: int, types: Collection[str]) -> Sequence[SentMessage]:
        """Return what was sent on this day of some types."""
        named = self._dealer, self._day, first, last, list(types)
        return [SentMessage(*row) for row in await self._pool.fetch(_SENT, *named)]

    async def note(self, *, is_on: bool, problem: str | None = None) -> None:
        """Note the state of the session for operators, who see its last problem of the day."""
        await self._pool.execute(_NOTE, self._dealer, self._owner_id, is_on, problem, wall_now())

    async def _require(self, sql: str, *values: object) -> None:
        if await self._pool.fetchval(sql, *values) is None:
            raise SessionLost(self._dealer)


async def list_new(conn: Db, dealer: str) -> list[StoredMessage]:
    """Return the messages of a dealer that are not booked, in their order."""
    return await _messages.all(conn, _NEW, dealer)


async def find_sent(conn: Db, answer: StoredMessage, seq: int) -> StoredMessage | None:
    """Return the newest message that was sent under a number on the day of an answer."""
    return await _messages.first(conn, _OF_NUMBER, answer.dealer, seq, answer.message_id)


async def settle(conn: Db, message_id: UUID, status: MessageStatus, reason: str, **about: UUID | str | None) -> None:
    """Note what became of a message, and the `order_id` and `reference` that it is about."""
    await conn.execute(_SETTLE, message_id, status, reason[:500] or None, about["order_id"], about["reference"])


async def list_open(conn: Db, limit: int) -> list[StoredMessage]:
    """Return the messages that a person has to see, oldest first."""
    return await _messages.all(conn, _OPEN, limit)


async def close_open_message(conn: Db, message_id: UUID) -> None:
    """Close a message that a person has seen. Raises NotFound unless it is held or refused."""
    if await conn.fetchval(_CLOSE, message_id) is None:
        raise NotFound(f"No message {message_id} waits for a person.")


async def list_of_order(conn: Db, order_id: UUID, limit: int) -> list[StoredMessage]:
    """Return the messages about an order, oldest first."""
    return await _messages.all(conn, _OF_ORDER, order_id, limit)


async def list_cancels(conn: Db, order_ids: Collection[UUID]) -> set[UUID]:
    """Return those of the orders for which a cancel request was sent."""
    return {row["order_id"] for row in await conn.fetch(_CANCELS, list(order_ids))}


async def reset_numbers(conn: Db, dealer: str) -> None:
    """Let the next logon of a session that is off begin at 1 again. Raises NotFound if none is off."""
    if await conn.fetchval(_RESET_OFF, dealer) is None:
        raise NotFound(f"No session with {dealer} is off.")


async def list_sessions(conn: Db) -> list[SessionState]:
    """Return the sessions that there have been, by dealer."""
    return await _sessions.all(conn, f"{_sessions.select} ORDER BY dealer")
