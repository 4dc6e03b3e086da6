"""ACH entries, and outbound files: their entries, trace numbers and confirmation.

Numbering locks the ledger heads of the customers, so that no entry is cancelled in the meantime. The
content of a numbered file is a function of its rows, so a crash leaves nothing half done.
"""

from collections.abc import AsyncIterator, Sequence
from datetime import date, datetime, timedelta
from typing import NamedTuple
from uuid import UUID

import msgspec

from billfold.accounts.counterparties.store import is_stopped
from billfold.accounts.notes.store import amount_between, created_between, payment_filters
from billfold.payments.ach.commands import AchEntry, OriginationHistory, ReturnEntry
from billfold.payments.ach.rules.review import ADMINISTRATIVE, HISTORY_DAYS, UNAUTHORISED
from billfold.platform.database.connection import Connection, Db
from billfold.platform.database.distribution import HEADS_LOCKED
from billfold.platform.database.former_rows import as_json
from billfold.platform.database.paging import BY_CREATION, Along, BoundedList, KeysetList
from billfold.platform.database.rows import References, Table
from billfold.platform.dates import ET, et_date, et_instant
from billfold.platform.ids import command_id

_entries = Table(AchEntry, key=("ach_id",), noun="ACH entry")
_originations, _of_customer = Table(AchEntry, noun="ACH origination"), Table(AchEntry, noun="ACH debit")
_SELECT, _COLUMNS = _entries.select, _entries.columns()
_REFERENCED = f"""
{_SELECT} WHERE customer_id = ANY($1::uuid[]) AND ach_id = ANY($2::uuid[])
UNION ALL
{_SELECT} WHERE customer_id = ANY($1::uuid[]) AND reverses_id = ANY($2::uuid[])
   AND reverses_id IS NOT NULL AND status NOT IN ('REJECTED', 'CANCELLED')
"""
_OPEN_ENTRIES = f"""
SELECT DISTINCT ON (customer_id, pocket_id) {_COLUMNS} FROM ach_entry
 WHERE customer_id = ANY($1::uuid[]) AND way = 'ORIGINATION' AND pocket_id IS NOT NULL
   AND (status IN ('PENDING', 'APPROVED')
        OR (status = 'IN_TRANSIT' AND direction = 'DEBIT' AND entry_no IS NULL))
 ORDER BY customer_id, pocket_id
"""
_ORIGINATION = "customer_id = $1 AND ach_id = $2 AND ach_entry.way = 'ORIGINATION'"
_GET = f"{_SELECT} WHERE {_ORIGINATION}"
_GET_THEN = f"{_originations.select_as_of('$3', of=('$1', '$2'))} AND {_ORIGINATION}"
_BY_TRACES = f"""{_SELECT}
 WHERE trace_number = ANY($1::text[]) AND way = 'ORIGINATION' ORDER BY created_at"""
_TO_REVIEW = f"{_SELECT} WHERE status = 'PENDING' ORDER BY created_at, written_no LIMIT $1"
_ENTRIES_WITH = f"""{_SELECT}
 WHERE ($1::uuid IS NULL OR customer_id = $1) AND ($2::text IS NULL OR trace_number = $2)
   AND ($3::text IS NULL OR way = $3) AND ($4::text IS NULL OR direction = $4)
   AND ($5::text IS NULL OR status = $5)
 ORDER BY created_at DESC, written_no DESC LIMIT $6"""
_HISTORY = """
SELECT coalesce(sum(amount) FILTER (WHERE created_at >= $2), 0)::bigint,
       count(*) FILTER (WHERE direction = 'DEBIT' AND trace_number IS NOT NULL),
       count(*) FILTER (WHERE direction = 'DEBIT' AND return_code IS NOT NULL),
       count(*) FILTER (WHERE direction = 'DEBIT' AND return_code = ANY($4::text[])),
       count(*) FILTER (WHERE direction = 'DEBIT' AND return_code = ANY($5::text[]))
  FROM ach_entry
 WHERE customer_id = $1 AND way = 'ORIGINATION' AND created_at >= $3
   AND status NOT IN ('REJECTED', 'CANCELLED')
"""


def _then(number: int) -> str:
    return f"{_originations.select_as_of(f'${number}', 'written_no')} AND ach_entry"


_NOW = f"SELECT {_COLUMNS}, written_no FROM ach_entry WHERE ach_entry"
ORIGINATIONS, ORIGINATIONS_THEN = (
    KeysetList(
        f"""SELECT * FROM ({selected}.customer_id = $1 AND ach_entry.way = 'ORIGINATION') e
 WHERE ($2::uuid IS NULL OR pocket_id = $2)
   AND ($3::text[] IS NULL OR status = ANY($3)) AND ($4::text IS NULL OR direction = $4)
   AND {payment_filters("e", "ach_id", 5)} AND {{page}}""",
        _entries.read,
        **BY_CREATION,
    )
    for selected in (_NOW, _then(11))
)
"""The originations of a customer, by Pocket, statuses, direction and `payment_filters`; None does not filter."""
ORIGINATIONS_OF_PARTNER, ORIGINATIONS_OF_PARTNER_THEN = (
    BoundedList(
        f"""SELECT * FROM ({selected}.partner_id = $1 AND ach_entry.way = 'ORIGINATION') e
 WHERE ($2::text[] IS NULL OR status = ANY($2))
   AND ($3::text IS NULL OR direction = $3) AND ($4::boolean IS NULL OR (return_code IS NOT NULL) = $4)
   AND {created_between(5)} AND {amount_between(7)} AND ($9::uuid IS NULL OR counterparty_id = $9) AND {{page}}""",
        _entries.read,
        Along(f"ach_entry WHERE partner_id = $1 AND way = 'ORIGINATION'{until}", places),
        **BY_CREATION,
    )
    for selected, until, places in ((_NOW, "", (0,)), (_then(10), " AND created_at <= $2", (0, 9)))
)
"""The originations of all customers of a partner, by statuses, direction and whether they were returned, and by
`PaymentFilters` but their notes, which are sealed with keys of customers."""
DEBITS, DEBITS_THEN = (
    KeysetList(
        f"""SELECT * FROM ({selected}.customer_id = $1 AND ach_entry.way = 'RECEIVING'
   AND ach_entry.direction = 'DEBIT') e WHERE ($2::uuid IS NULL OR pocket_id = $2)
   AND ($3::text[] IS NULL OR status = ANY($3)) AND ($4::boolean IS NULL OR (return_code IS NOT NULL) = $4)
   AND {created_between(5)} AND {amount_between(7)} AND {{page}}""",
        _entries.read,
        **BY_CREATION,
    )
    for selected in (_NOW, _then(9))
)
"""The debits that a customer has received, by Pocket, statuses, whether they were returned, time and amount."""


async def load_references(conn: Connection, customer_ids: Sequence[UUID], ids: Sequence[UUID]) -> References:
    """Return the entries among these ids, and their reversals, as (customer, id, entry)."""
    return [(each.customer_id, each.ach_id, each) for each in await _entries.all(conn, _REFERENCED, customer_ids, ids)]


async def load_open_entries(conn: Connection, customer_ids: Sequence[UUID], ids: Sequence[UUID]) -> References:
    """Return one open entry of each Pocket that has any."""
    del ids
    return [(each.customer_id, each.ach_id, each) for each in await _entries.all(conn, _OPEN_ENTRIES, customer_ids)]


async def get_origination(conn: Db, customer_id: UUID, ach_id: UUID, as_of: datetime | None = None) -> AchEntry:
    """Return an entry the customer originated, as it is or was. Raises NotFound."""
    if as_of is not None:
        return await _originations.one(conn, _GET_THEN, customer_id, ach_id, as_of)
    return await _originations.one(conn, _GET, customer_id, ach_id)


get_entry = _entries.get
get_customers_entry = _of_customer.get


async def list_entries(
    conn: Db,
    *,
    customer_id: UUID | None = None,
    trace: str | None = None,
    way: str | None = None,
    direction: str | None = None,
    status: str | None = None,
    limit: int = 100,
) -> list[AchEntry]:
    """Return entries of all customers, for the operator, newest first."""
    return await _entries.all(conn, _ENTRIES_WITH, customer_id, trace, way, direction, status, limit)


async def find_by_traces(conn: Db, traces: Sequence[str]) -> dict[str, AchEntry]:
    """Return originations by trace number; the latest if a number was used twice."""
    return {str(each.trace_number): each for each in await _entries.all(conn, _BY_TRACES, traces)}


async def list_to_review(conn: Db, limit: int = 100) -> list[AchEntry]:
    """Return the entries that wait for an operator, oldest first."""
    return await _entries.all(conn, _TO_REVIEW, limit)


async def read_history(conn: Db, customer_id: UUID, now: datetime) -> OriginationHistory:
    """Return the origination history of a customer, the input of the review."""
    span = et_instant(et_date(now), 0), now - timedelta(days=HISTORY_DAYS)
    row = await conn.fetchrow(_HISTORY, customer_id, *span, sorted(ADMINISTRATIVE), sorted(UNAUTHORISED))
    return OriginationHistory(*row) if row is not None else OriginationHistory()


TRACE_NUMBERS = 10_000_000
"""Trace numbers of a bank before they wrap around."""
_FETCH_SIZE = 2_000
_RETURN_ENTRY_DECODER = msgspec.json.Decoder(ReturnEntry)

_STOPPED = is_stopped("ach_entry")
_IS_WAITING = "status = 'APPROVED' AND file_id IS NULL AND due_at <= $1"
_IS_DUE = f"{_IS_WAITING} AND NOT {_STOPPED}"
_TO_REJECT = f"""
SELECT customer_id, ach_id, account_status = 'FROZEN' AS is_frozen
  FROM ach_entry JOIN customer USING (customer_id) WHERE {_IS_WAITING} AND {_STOPPED}
"""
_ANSWER_IS_DUE = "file_id IS NULL AND due_at <= $1"
_DUE_CUSTOMERS = f"""
SELECT customer_id FROM ach_entry WHERE {_IS_DUE} UNION
SELECT customer_id FROM ach_return_entry WHERE {_ANSWER_IS_DUE}
"""
# Entries of customers whose data key is damaged wait for another window.
_IS_OPENED = "customer_id <> ALL($2::uuid[])"
_LOCK_HEADS = f"""
SELECT customer_id
  FROM {HEADS_LOCKED}(ARRAY(SELECT DISTINCT customer_id FROM ach_entry WHERE {_IS_DUE} AND {_IS_OPENED}))
"""
_COUNT = f"""
SELECT (SELECT count(*) FROM ach_entry WHERE {_IS_DUE} AND {_IS_OPENED}),
       (SELECT count(*) FROM ach_return_entry WHERE {_ANSWER_IS_DUE} AND {_IS_OPENED})
"""
_LATE = """
SELECT customer_id, array_agg(ach_id ORDER BY ach_id) AS ach_ids
  FROM ach_entry
 WHERE status = 'APPROVED' AND file_id IS NULL AND due_at <= $1 AND settles_at <= $1
 GROUP BY customer_id ORDER BY customer_id
"""
_TAKE_TRACES = """
UPDATE ach_counter SET traces =
       CASE WHEN traces % $2 + $1 > $2 THEN (traces / $2 + 1) * $2 + $1 ELSE traces + $1 END
RETURNING traces - $1
"""
_NEXT_OF_DAY = "SELECT count(*) FROM ach_file WHERE day = $1"
_OPEN = """
INSERT INTO ach_file (file_id, name, day, number, made_at) VALUES ($1, $2, $3, $4, $5)
"""
_KEEP_FORMER = f"""
INSERT INTO former_row (customer_id, kind, object_id, until, row)
SELECT customer_id, 'ach_entry', ach_id, $3, {as_json("ach_entry", columns=AchEntry.keeps_former)}
  FROM ach_entry WHERE {_IS_DUE} AND {_IS_OPENED}
    ON CONFLICT DO NOTHING
"""
_NUMBER = f"""
WITH waiting AS (
  SELECT customer_id, ach_id,
         row_number() OVER (ORDER BY customer_id, company_name, sec_code, description,
                                     effective_on, direction, ach_id) AS nth
    FROM ach_entry WHERE {_IS_DUE} AND {_IS_OPENED})
UPDATE ach_entry e
   SET file_id = $3, trace_number = $4 || lpad((($5::bigint + nth - 1) % $6)::text, 7, '0')
  FROM waiting w WHERE e.customer_id = w.customer_id AND e.ach_id = w.ach_id
"""
_NUMBER_ANSWERS = f"""
WITH waiting AS (
  SELECT return_entry_id, row_number() OVER (ORDER BY payload->>'company', payload->>'company_id',
                payload->>'entry_class', payload->>'purpose', return_entry_id) AS nth
    FROM ach_return_entry WHERE {_ANSWER_IS_DUE} AND {_IS_OPENED})
UPDATE ach_return_entry a
   SET file_id = $3, trace_number = $4 || lpad((($5::bigint + nth - 1) % $6)::text, 7, '0')
  FROM waiting w WHERE a.return_entry_id = w.return_entry_id
"""
_TIMES = """
UPDATE ach_file f SET settles_at = t.settles_at, settled_at = t.settled_at
  FROM (SELECT max(settles_at) AS settles_at, max(settled_at) AS settled_at
          FROM ach_entry WHERE file_id = $1) t
 WHERE f.file_id = $1
"""
_UNCONFIRMED = "SELECT * FROM ach_file WHERE confirmed_at IS NULL ORDER BY made_at, number"
_CONFIRM = "UPDATE ach_file SET confirmed_at = $2 WHERE file_id = $1"
_ANSWERS = "SELECT customer_id, trace_number, payload FROM ach_return_entry WHERE file_id = $1 ORDER BY trace_number"
_BY_CUSTOMER = """
SELECT customer_id, array_agg(ach_id ORDER BY trace_number) AS ach_ids
  FROM ach_entry
 WHERE file_id = $1 AND way = 'ORIGINATION' AND ($2::text IS NULL OR direction = $2)
 GROUP BY customer_id ORDER BY customer_id
"""
_ANSWER = """
INSERT INTO ach_return_entry (return_entry_id, customer_id, due_at, payload, created_at)
SELECT return_entry_id, $2, $3, payload::json, $5
  FROM unnest($1::uuid[], $4::text[]) AS a(return_entry_id, payload) ON CONFLICT DO NOTHING
"""


class OutgoingEntry(NamedTuple):
    """The fields of an entry in a file, those of its batch first."""

    customer_id: UUID
    company_name: str
    sec_code: str
    description: str
    effective_on: date
    direction: str
    due_at: datetime
    routing_number: str
    account_number: str
    account_type: str
    party_name: str
    identification: str
    amount: int
    lines: list[str]
    trace_number: str

    @property
    def batch_key(self) -> tuple[object, ...]:
        """The fields that all entries of a batch share."""
        return self[:6]


_ENTRIES = f"""
SELECT {", ".join(OutgoingEntry._fields)} FROM ach_entry
 WHERE file_id = $1 AND way = 'ORIGINATION' ORDER BY trace_number
"""


class NumberedFile(NamedTuple):
    """A file whose entries are numbered; fields in the order of the table's columns."""

    file_id: UUID
    name: str
    day: date
    number: int
    made_at: datetime
    settles_at: datetime | None
    settled_at: datetime | None
    confirmed_at: datetime | None

    @property
    def modifier(self) -> str:
        """The file ID modifier: A to Z and 0 to 9, by its number within the day."""
        return "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"[self.number % 36]

    @property
    def clock(self) -> datetime:
        """The creation time: Eastern time in minutes, without offset."""
        return self.made_at.astimezone(ET).replace(second=0, microsecond=0, tzinfo=None)


async def list_due_customers(conn: Db, by: datetime) -> list[UUID]:
    """Return the customers with entries and returns due by then."""
    return [row[0] for row in await conn.fetch(_DUE_CUSTOMERS, by)]


async def number_waiting(
    conn: Connection, *, by: datetime, now: datetime, bank: str, without: Sequence[UUID] = ()
) -> bool:
    """Create a file with everything due by then, in one transaction. False if nothing is due.

    `bank` is the eight-digit identification at the start of our trace numbers; customers in `without` are skipped.
    """
    await conn.execute(_LOCK_HEADS, by, without)
    entries, answers = await conn.fetchrow(_COUNT, by, without) or (0, 0)
    if not entries + answers:
        return False
    day = et_date(now)
    number = await conn.fetchval(_NEXT_OF_DAY, day)
    name = f"ACH-{day:%Y%m%d}-{number + 1:03}.ach"
    file_id = command_id("ach-file", name)
    await conn.execute(_OPEN, file_id, name, day, number, now)
    first = await conn.fetchval(_TAKE_TRACES, entries + answers, TRACE_NUMBERS)
    await conn.execute(_KEEP_FORMER, by, without, now)
    await conn.execute(_NUMBER, by, without, file_id, bank, first, TRACE_NUMBERS)
    await conn.execute(_NUMBER_ANSWERS, by, without, file_id, bank, first + entries, TRACE_NUMBERS)
    await conn.execute(_TIMES, file_id)
    return True


async def list_stopped(conn: Db, by: datetime) -> list[tuple[UUID, UUID, bool]]:
    """Return customer and id of the entries due by then that must not leave, and whether the customer is frozen."""
    rows = await conn.fetch(_TO_REJECT, by)
    return [(row["customer_id"], row["ach_id"], row["is_frozen"]) for row in rows]


async def list_late(conn: Db, now: datetime) -> list[tuple[UUID, list[UUID]]]:
    """Return per customer the entries that missed their window."""
    return [(row[0], row[1]) for row in await conn.fetch(_LATE, now)]


async def list_unconfirmed(conn: Db) -> list[NumberedFile]:
    """Return files that are not confirmed to all customers, oldest first."""
    return [NumberedFile(*row) for row in await conn.fetch(_UNCONFIRMED)]


async def mark_confirmed(conn: Db, file_id: UUID, now: datetime) -> None:
    """Record that a file is transmitted and confirmed to all customers."""
    await conn.execute(_CONFIRM, file_id, now)


async def read_entries(conn: Connection, file_id: UUID) -> AsyncIterator[list[OutgoingEntry]]:
    """Yield the entries of a file in the order of their numbers, in batches, within a transaction."""
    entries = await conn.cursor(_ENTRIES, file_id)
    while rows := await entries.fetch(_FETCH_SIZE):
        yield [OutgoingEntry(*row) for row in rows]


class OutgoingReturn(NamedTuple):
    """A return in a file: its customer, its trace number and its content."""

    customer_id: UUID
    trace_number: str
    entry: ReturnEntry


async def read_return_entries(conn: Connection, file_id: UUID) -> AsyncIterator[list[OutgoingReturn]]:
    """Yield the returns of a file in the order of their numbers, as `read_entries` does."""
    answers = await conn.cursor(_ANSWERS, file_id)
    while rows := await answers.fetch(_FETCH_SIZE):
        yield [OutgoingReturn(row[0], row[1], _RETURN_ENTRY_DECODER.decode(row[2])) for row in rows]


async def entries_by_customer(
    conn: Db, file_id: UUID, *, direction: str | None = None
) -> list[tuple[UUID, list[UUID]]]:
    """Return per customer the entries of a file, in the order of their numbers."""
    return [(row[0], row[1]) for row in await conn.fetch(_BY_CUSTOMER, file_id, direction)]


async def queue_return_entries(
    conn: Db, answers: Sequence[tuple[UUID, ReturnEntry]], customer_id: UUID, *, due_at: datetime, now: datetime
) -> None:
    """Queue returns for their window. A queued return of the same id stays unchanged."""
    ids = [return_entry_id for return_entry_id, _ in answers]
    payloads = [msgspec.json.encode(return_entry).decode() for _, return_entry in answers]
    await conn.execute(_ANSWER, ids, customer_id, due_at, payloads, now)
