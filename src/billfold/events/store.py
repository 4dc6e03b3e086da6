"""Reads events in the sequence of a subscriber, or in that of a subscription.

An event without a sequence at the subscriber's level is not visible to it; the sequencer numbers what
was just committed.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec

from billfold.events.schemas import API_VERSION, Envelope, Subscriber
from billfold.platform.database.connection import Connection, Pool
from billfold.platform.database.paging import SortKey
from billfold.platform.errors import NotFound

DIRECTIONS = {True: {"than": "<", "way": "DESC"}, False: {"than": ">", "way": "ASC"}}
"""Parts of the statement of a list that is `descending` or not."""

_LOGGED = """
SELECT t.event_id, t.customer_id, t.kind, t.raised_at, t.{level}_sequence AS sequence,
       t.{level}_sequence - 1 AS previous_sequence, t.event_no, e.payload
  FROM event_sequence t JOIN event e USING (customer_id, event_no)
"""
# Two statements: which index serves depends on whether there is a time.
_LIST = (
    _LOGGED
    + """
 WHERE t.{level}_id = $1 AND t.{level}_sequence IS NOT NULL AND ($2::bigint IS NULL OR t.{level}_sequence {than} $2)
 ORDER BY t.{level}_sequence {way} LIMIT $3
"""
)
_LIST_AFTER = _LIST.replace("ORDER BY", "AND t.raised_at > $4 ORDER BY")
_ONE = _LOGGED + " WHERE t.event_id = $1 AND t.{level}_id = $2 AND t.{level}_sequence IS NOT NULL"
_NEWEST = """
SELECT coalesce(max(t.{level}_sequence), 0) FROM event_sequence t WHERE t.{level}_id = $1
       AND t.{level}_sequence IS NOT NULL
"""

_SIMULATED = """
SELECT s.event_id, s.customer_id, s.kind, s.raised_at, NULL::bigint AS sequence,
       NULL::bigint AS previous_sequence, NULL::bigint AS event_no, s.payload
  FROM simulated_event s
"""
_ONE_SIMULATED = (
    _SIMULATED
    + """
 WHERE s.event_id = $1 AND s.partner_id = $2 AND s.customer_id IS NOT DISTINCT FROM $3
"""
)
_LIST_OF_SUBSCRIPTION = """
SELECT d.event_id, coalesce(e.customer_id, s.customer_id) AS customer_id,
       coalesce(e.kind, s.kind) AS kind, coalesce(e.raised_at, s.raised_at) AS raised_at,
       d.sequence, d.previous_sequence, d.event_no, coalesce(e.payload, s.payload) AS payload,
       d.queued_at
  FROM delivery d
  LEFT JOIN event e ON e.customer_id = d.customer_id AND e.event_no = d.event_no
  LEFT JOIN simulated_event s ON s.serial = d.simulated
 WHERE d.subscription_id = $1
   AND ($2::timestamptz IS NULL OR coalesce(e.raised_at, s.raised_at) > $2)
   AND ($3::timestamptz IS NULL
        OR (d.queued_at, coalesce(d.sequence, 0), d.event_id) {than} ($3, $4::bigint, $5::uuid))
 ORDER BY d.queued_at {way}, coalesce(d.sequence, 0) {way}, d.event_id {way} LIMIT $6
"""
_LIST_NEW = """
SELECT w.reader, n.* FROM unnest($1::uuid[], $2::bigint[]) AS w (reader, mark)
 CROSS JOIN LATERAL ({logged} WHERE t.{level}_id = w.reader AND t.{level}_sequence > w.mark
                     ORDER BY t.{level}_sequence LIMIT $3) n
 ORDER BY n.sequence
"""
_NEW_SIMULATED = """
SELECT s.serial, s.partner_id, s.event_id, s.customer_id, s.kind, s.raised_at,
       NULL::bigint AS sequence, NULL::bigint AS previous_sequence, NULL::bigint AS event_no,
       s.payload
  FROM simulated_event s WHERE s.serial > $1 AND s.subscription_id IS NULL
 ORDER BY s.serial LIMIT $2
"""
_LAST_SERIAL = "SELECT coalesce(max(serial), 0) FROM simulated_event"


class LoggedEvent(msgspec.Struct, frozen=True, kw_only=True):
    """An event with its place in a subscriber's sequence; a simulated one has none.

    `payload` is JSON text. `queued_at` is the wall time at which its deliveries were made.
    """

    event_id: UUID
    customer_id: UUID | None
    kind: str
    raised_at: datetime
    sequence: int | None
    previous_sequence: int | None
    event_no: int | None
    payload: str
    queued_at: datetime | None = None

    @property
    def place(self) -> SortKey:
        """Return its position in its list."""
        if self.queued_at is None:
            return (self.sequence or 0,)
        return self.queued_at.isoformat(), self.sequence or 0, str(self.event_id)


class NewEvent(msgspec.Struct, frozen=True):
    """A new event, and the `key` of its subscriber."""

    key: UUID
    event: LoggedEvent


async def list_events(
    conn: Connection | Pool,
    reader: Subscriber,
    *,
    limit: int,
    after: datetime | None = None,
    place: SortKey | None = None,
    descending: bool = True,
) -> list[LoggedEvent]:
    """Return a reader's events in the order of their sequence, on from a place.

    `after` keeps those whose timestamp is later.
    """
    sql = _LIST if after is None else _LIST_AFTER
    sequence = None if place is None else int(place[0])
    parameters = [reader.key, sequence, limit] + ([] if after is None else [after])
    rows = await conn.fetch(sql.format(level=reader.level, **DIRECTIONS[descending]), *parameters)
    return [event_of(row) for row in rows]


async def list_subscription_events(
    conn: Connection | Pool,
    subscription_id: UUID,
    *,
    limit: int,
    after: datetime | None = None,
    place: SortKey | None = None,
    descending: bool = True,
) -> list[LoggedEvent]:
    """Return the events queued for a subscription, simulated ones included, in that order.

    The caller must have checked the owner of the subscription.
    """
    queued_at, sequence, event_id = place or (None, None, None)
    rows = await conn.fetch(
        _LIST_OF_SUBSCRIPTION.format(**DIRECTIONS[descending]),
        subscription_id,
        after,
        None if queued_at is None else datetime.fromisoformat(str(queued_at)),
        sequence,
        None if event_id is None else UUID(str(event_id)),
        limit,
    )
    return [event_of(row) for row in rows]


async def get_event(conn: Connection | Pool, reader: Subscriber, event_id: UUID) -> LoggedEvent:
    """Return one event that the reader can see, or one simulated for them. Raises NotFound."""
    row = await conn.fetchrow(_ONE.format(level=reader.level), event_id, reader.key)
    if row is None:
        whose = reader.partner_id, reader.customer_id
        row = await conn.fetchrow(_ONE_SIMULATED, event_id, *whose)
    if row is None:
        raise NotFound("There is no such event.")
    return event_of(row)


async def newest_sequence(conn: Connection | Pool, reader: Subscriber) -> int:
    """Return the highest sequence a reader has received, 0 before the first."""
    return int(await conn.fetchval(_NEWEST.format(level=reader.level), reader.key))


async def list_new_events(
    conn: Connection | Pool, last_sequences: Mapping[Subscriber, int], *, limit: int
) -> list[NewEvent]:
    """Return the events of each of these readers after their position, up to `limit` each."""
    found: list[NewEvent] = []
    for level in ("partner", "customer"):
        group = [each for each in last_sequences if each.level == level]
        if group:
            sql = _LIST_NEW.format(logged=_LOGGED.format(level=level), level=level)
            rows = await conn.fetch(sql, [each.key for each in group], [last_sequences[each] for each in group], limit)
            found += [NewEvent(row["reader"], event_of(row)) for row in rows]
    return found


async def last_simulated_serial(conn: Connection | Pool) -> int:
    """Return the serial of the newest simulated event."""
    return int(await conn.fetchval(_LAST_SERIAL))


async def list_new_simulated(conn: Connection | Pool, serial: int, *, limit: int) -> tuple[int, list[NewEvent]]:
    """Return the events simulated after a serial, and the serial to continue from."""
    rows = await conn.fetch(_NEW_SIMULATED, serial, limit)
    news = [NewEvent(row["customer_id"] or row["partner_id"], event_of(row)) for row in rows]
    return (rows[-1]["serial"] if rows else serial), news


def envelope_of(event: LoggedEvent, customer_id: UUID | None, previous: int | None = None) -> Envelope:
    """Return an event as its reader receives it; `previous` is the sequence received before.

    `customer_id` is set if the reader is that customer, and not its partner.
    """
    return Envelope(
        event_id=event.event_id,
        event_type=event.kind,
        timestamp=event.raised_at,
        sequence=event.sequence,
        previous_sequence=event.previous_sequence if previous is None else previous,
        api_version=API_VERSION,
        resource_version=event.event_no,
        customer_id=customer_id or msgspec.UNSET,
        payload=msgspec.Raw(event.payload),
    )


def event_of(row: Any) -> LoggedEvent:  # noqa: ANN401 - a record of asyncpg
    """Return the event of a row."""
    return LoggedEvent(**{name: row[name] for name in LoggedEvent.__struct_fields__ if name in row})
