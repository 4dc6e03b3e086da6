"""Reads events in the sequence of a subscriber, or in that of a subscription.

An event without a sequence at the subscriber's level is not visible to it; the sequencer numbers what
was just committed.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

import msgspec

from billfold.data_keys.keys import DataKeys
from billfold.data_keys.notes import read_notes
from billfold.events.schemas import API_VERSION, OBJECT_FIELDS, Envelope, Subscriber
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
_PAGE = """
 WHERE t.{level}_id = $1 AND t.{level}_sequence IS NOT NULL AND ($2::bigint IS NULL OR t.{level}_sequence {than} $2)
   {filter} ORDER BY t.{level}_sequence {way} LIMIT $3
"""
# A statement for each set of filters: which index serves depends on them.
_FILTERS = {
    "after": " AND t.raised_at > ${n}",
    "kinds": " AND t.kind = ANY(${n})",
    "object_id": " AND t.object_id = ${n}",
}
# A page of each kind, by its index, and of these the page.
_LIST_OF_KINDS = (
    """
WITH t AS MATERIALIZED (
  SELECT p.* FROM unnest($4::text[]) AS k(kind)
   CROSS JOIN LATERAL (SELECT t.* FROM event_sequence t {of_kind}) p ORDER BY p.{level}_sequence {way} LIMIT $3
)
"""
    + _LOGGED.replace("event_sequence t", "t")
    + " ORDER BY t.{level}_sequence {way}"
)
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
   AND ($7::text[] IS NULL OR coalesce(e.kind, s.kind) = ANY($7))
   AND ($8::uuid IS NULL OR EXISTS (SELECT 1 FROM event_sequence t WHERE t.customer_id = d.customer_id
                                       AND t.event_no = d.event_no AND t.object_id = $8))
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
    note: Mapping[str, Any] = {}
    """The external id and the metadata of its object, as far as it has them."""

    @property
    def object_id(self) -> UUID | None:
        """The id of the object that it is about."""
        found = msgspec.json.decode(self.payload).get(OBJECT_FIELDS.get(self.kind))
        return None if found is None else UUID(found)

    @property
    def place(self) -> SortKey:
        """Return its position in its list."""
        if self.queued_at is None:
            return (self.sequence or 0,)
        return self.queued_at.isoformat(), self.sequence or 0, str(self.event_id)


class EventFilter(NamedTuple):
    """The events of a list: those with a later timestamp, of these kinds, about this object; None for any."""

    after: datetime | None = None
    kinds: Sequence[str] | None = None
    object_id: UUID | None = None


ALL_EVENTS = EventFilter()


class NewEvent(msgspec.Struct, frozen=True):
    """A new event, and the `key` of its subscriber."""

    key: UUID
    event: LoggedEvent


async def list_events(
    conn: Connection | Pool,
    reader: Subscriber,
    wanted: EventFilter = ALL_EVENTS,
    *,
    limit: int,
    place: SortKey | None = None,
    descending: bool = True,
) -> list[LoggedEvent]:
    """Return a reader's events in the order of their sequence, on from a place."""
    given = {name: value for name, value in wanted._asdict().items() if value is not None}
    of_kinds = given.pop("kinds", None) if wanted.object_id is None else None
    parameters = [reader.key, None if place is None else int(place[0]), limit, *filter(None, [of_kinds])]
    first = len(parameters) + 1
    filters = "".join(_FILTERS[name].format(n=first + n) for n, name in enumerate(given))
    words = {"level": reader.level, **DIRECTIONS[descending]}
    if of_kinds is None:
        sql = (_LOGGED + _PAGE).format(filter=filters, **words)
    else:
        of_kind = _PAGE.format(filter=f"AND t.kind = k.kind{filters}", **words)
        sql = _LIST_OF_KINDS.format(of_kind=of_kind, **words)
    return [event_of(row) for row in await conn.fetch(sql, *parameters, *given.values())]


async def list_subscription_events(
    conn: Connection | Pool,
    subscription_id: UUID,
    wanted: EventFilter = ALL_EVENTS,
    *,
    limit: int,
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
        wanted.after,
        None if queued_at is None else datetime.fromisoformat(str(queued_at)),
        sequence,
        None if event_id is None else UUID(str(event_id)),
        limit,
        wanted.kinds,
        wanted.object_id,
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


_ACCOUNTS = "customer."
"""The kinds about a customer, whose note is that of its partner: it lies with the partner's own customer."""
_OF_PARTNERS = """
SELECT c.customer_id, p.own_customer_id FROM customer c JOIN partner p USING (partner_id)
 WHERE c.customer_id = ANY($1::uuid[])
"""


async def with_notes(
    conn: Connection | Pool, keys: DataKeys, events: Sequence[LoggedEvent], *, by_customer: bool
) -> list[LoggedEvent]:
    """Return events with the notes of what they are about, as far as their reader sees them.

    The payee of a transfer does not see the note of its payer, nor a customer that of its partner.
    """
    customers = {each.customer_id for each in events if each.kind.startswith(_ACCOUNTS)}
    found = await conn.fetch(_OF_PARTNERS, customers) if customers and not by_customer else ()
    owners = {row["customer_id"]: row["own_customer_id"] for row in found}
    places = [
        (owners.get(each.customer_id) if each.kind.startswith(_ACCOUNTS) else each.customer_id, each.object_id)
        for each in events
    ]
    known = {(owner, object_id) for owner, object_id in places if owner is not None and object_id is not None}
    if not known:
        return list(events)
    notes = await read_notes(conn, keys, *(list(set(each)) for each in zip(*known, strict=True)))
    return [
        msgspec.structs.replace(each, note=notes[place]) if place in notes else each
        for each, place in zip(events, places, strict=True)
    ]


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
        object_id=event.object_id,
        external_id=event.note.get("external_id"),
        metadata=event.note.get("metadata", {}),
        customer_id=customer_id or msgspec.UNSET,
        payload=msgspec.Raw(event.payload),
    )


def event_of(row: Any) -> LoggedEvent:  # noqa: ANN401 - a record of asyncpg
    """Return the event of a row."""
    return LoggedEvent(**{name: row[name] for name in LoggedEvent.__struct_fields__ if name in row})
