"""Pages of transactions at every level, with the sweep of each when requested."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Annotated, Any
from uuid import UUID

import msgspec

from billfold.accounts.notes.store import show_notes
from billfold.accounts.notes.types import ShownNote
from billfold.accounts.transactions.settlement import SettledDocument, TransactionRow, remittance_shown
from billfold.accounts.transactions.store import Activity, TransactionFilters, sweep_of
from billfold.data_keys.keys import PartyField, PaymentKeys
from billfold.http.parameters import CentsQuery, ListQuery, Query, Since, Until, parse_choice, texts_among
from billfold.ledger.bank import Bank
from billfold.platform.crypto import is_sealed_text
from billfold.platform.database.paging import Page, Place, Stop
from billfold.platform.errors import InvalidInput

_IDENTIFICATION = "individual_identification_number"
_SEALED = '"sealed:'
_PAYMENTS = ("on_us_transfer_id", "wire_id", "ach_id")
_decode_documents = msgspec.json.Decoder(tuple[SettledDocument, ...]).decode


async def open_transactions(bank: Bank, rows: Sequence[TransactionRow]) -> list[TransactionRow]:
    """Return transactions for display. Data destroyed with its key is null, or empty where a text is required."""
    if not any(map(_has_sealed, rows)):
        return list(rows)
    keys = await PaymentKeys.load(bank, {row.customer_id for row in rows})
    return [_decrypt_transaction(row, keys) if _has_sealed(row) else row for row in rows]


async def noted_transactions(bank: Bank, rows: Sequence[TransactionRow]) -> list[TransactionRow]:
    """Return transactions with the notes of their payments among their details."""
    details = [msgspec.json.decode(row.details) for row in rows]
    keys = [_payment_of(row, told) for row, told in zip(rows, details, strict=True)]
    notes = {key: ShownNote() for key in keys if key is not None}
    await show_notes(bank, notes)
    noted = []
    for row, told, key in zip(rows, details, keys, strict=True):
        note = None if key is None else notes[key]
        if note is not None and (note.external_id or note.metadata):
            shown = msgspec.json.encode(told | msgspec.structs.asdict(note)).decode()
            noted.append(msgspec.structs.replace(row, details=shown))
        else:
            noted.append(row)
    return noted


def _payment_of(row: TransactionRow, details: Mapping[str, Any]) -> tuple[UUID, UUID] | None:
    """Return customer and id of the payment that a transaction belongs to."""
    found = next((details[name] for name in _PAYMENTS if details.get(name)), None)
    return None if found is None else (row.customer_id, UUID(found))


def _has_sealed(row: TransactionRow) -> bool:
    return is_sealed_text(row.description) or _SEALED in row.details or _SEALED in (row.remittance or "")


def _decrypt_transaction(row: TransactionRow, keys: PaymentKeys) -> TransactionRow:
    def plain(stored: str) -> str | None:
        return keys.open(PartyField.TEXT, row.customer_id, stored)

    details: dict[str, Any] = msgspec.json.decode(row.details)
    if isinstance(identification := details.get(_IDENTIFICATION), str):
        details[_IDENTIFICATION] = plain(identification)
    remittance: dict[str, Any] | None = msgspec.json.decode(row.remittance or "null")
    if remittance:
        texts = filter(None, map(plain, remittance.get("unstructured") or ()))
        references = remittance.get("structured") or {}
        documents = plain(references.get("documents") or "")
        remittance = remittance_shown(
            [line for text in texts for line in text.splitlines()],
            references.get("end_to_end_identification"),
            _decode_documents(documents) if documents else None,
        )
    return msgspec.structs.replace(
        row,
        description=plain(row.description) or "",
        details=msgspec.json.encode(details).decode(),
        remittance=None if remittance is None else msgspec.json.encode(remittance).decode(),
    )


TYPES = frozenset({"ACH", "WIRE", "CARD", "ON_US", "FEE", "CREDIT", "GENERIC"})
_DIRECTIONS = ("DEBIT", "CREDIT")
_TEXT_MIN, _TEXT_MAX = 2, 100
_AT_STOP = 2
TEXTS_READ_MAX = 1_000
"""Rows that one page of a search for a text decrypts, at most: many more than a journal entry has."""
_OPENED_AT_ONCE, _MEMBER_MAX = 100, 2**15 - 1
_SEARCHED = (
    *("counterparty_name", "company_name", "counterparty", "company_entry_description", "source", "target"),
    *("individual_identification_number", "trace_number", "reference_number", "end_to_end_identification"),
    *("uetr", "imad", "omad"),
)
"""The details that a search for a text reads: those that people see."""
_DIRECTION = Query(parse=partial(parse_choice, _DIRECTIONS), schema={"type": "string", "enum": [*_DIRECTIONS]})


_TEXT_HELP = (
    "Words, each of which is in the name of the other party, the title, the description, a reference or the "
    "remittance information."
)


def _parse_text(name: str, text: str) -> str:
    if not _TEXT_MIN <= len(text.strip()) <= _TEXT_MAX:
        raise InvalidInput.at("query", name, msg=f"must have {_TEXT_MIN} to {_TEXT_MAX} characters")
    return text.strip()


class TransactionQuery(TransactionFilters, frozen=True, kw_only=True):
    """Filter of transactions; None does not filter."""

    types: Annotated[list[str] | None, texts_among("type[]", TYPES)] = None
    direction: Annotated[str | None, _DIRECTION] = None
    booked_from: Annotated[Since, Query(name="time_booked_from")] = None
    booked_to: Annotated[Until, Query(name="time_booked_to")] = None
    settled_from: Annotated[Since, Query(name="time_settled_from")] = None
    settled_to: Annotated[Until, Query(name="time_settled_to")] = None
    amount_from: CentsQuery = None
    amount_to: CentsQuery = None
    transfers: Annotated[list[UUID] | None, Query(name="on_us_transfer[]")] = None
    wires: Annotated[list[UUID] | None, Query(name="wire[]")] = None
    portals: Annotated[list[UUID] | None, Query(name="portal[]")] = None
    cards: Annotated[list[UUID] | None, Query(name="card[]")] = None
    pockets: Annotated[list[UUID] | None, Query(name="pocket[]")] = None
    text: Annotated[
        str | None,
        Query(
            parse=_parse_text,
            schema={"type": "string", "minLength": _TEXT_MIN, "maxLength": _TEXT_MAX},
            description=_TEXT_HELP,
        ),
    ] = None


class SweepQuery(TransactionQuery, frozen=True, kw_only=True):
    """The same for partners, who can request sweeps."""

    types: Annotated[list[str] | None, texts_among("type[]", TYPES | {"SWEEP"})] = None
    sweeps: Annotated[
        bool,
        Query(
            name="include_sweeps",
            description="true includes the sweep of each transaction: with sweeps the bank account sums to zero.",
        ),
    ] = False

    def __post_init__(self) -> None:
        if not self.sweeps:
            for each in self.types or ():
                parse_choice(sorted(TYPES), "type[]", each)


async def transaction_page(
    bank: Bank, wanted: ListQuery, query: TransactionQuery, now: datetime, *, scope: str, activity: Activity
) -> Page[TransactionRow]:
    """Return one page. A position is the row's key and 0 for the activity, 1 for its sweep, 2 for a stop."""
    filters = {**msgspec.to_builtins(query), "descending": wanted.descending, "order": activity.order}
    if activity.as_of is not None:
        filters["as_of"] = activity.as_of.isoformat()
    position = wanted.position(bank.pager, scope, filters)
    backwards = position is not None and position.direction == "prev"
    descending = wanted.descending != backwards
    place = position.place if position else None
    after = activity.place_of(place[:-1]) if place else None
    # A search stops between rows, so no row there must be read again.
    if after is not None and place is not None and query.sweeps and place[-1] != _AT_STOP:
        after = _place_before(after, descending=descending)
    rows, stop = await _search(
        bank, query, activity, limit=wanted.limit + 2, now=now, after=after, descending=descending
    )
    parts = _with_sweeps(rows, query, last_first=backwards)
    if place is not None and query.sweeps:
        shown = [(*activity.sort_key_of(row), part) for row, part in parts]
        parts = parts[shown.index(place) + 1 :] if place in shown else parts
    page = bank.pager.page(
        scope,
        filters,
        parts[: wanted.limit + 1],
        limit=wanted.limit,
        start=position,
        sort_key_of=lambda half: (*activity.sort_key_of(half[0]), half[1]),
        stop=None if stop is None else Stop((*stop.place, _AT_STOP), stop.at),
    )
    opened = await noted_transactions(bank, await open_transactions(bank, [_row_of(half) for half in page.items]))
    return Page(opened, page.next_page, page.prev_page, page.stop)


async def _search(
    bank: Bank, query: TransactionQuery, activity: Activity, *, limit: int, **where: Any
) -> tuple[list[TransactionRow], Stop | None]:
    """Return rows, and where the search stopped. Texts are encrypted: each row is read to find some in them."""
    if not query.text:
        return await activity.search(bank.pool, query, calendars=bank.calendars, limit=limit, **where)
    rows, stop = await activity.search(bank.pool, query, calendars=bank.calendars, limit=TEXTS_READ_MAX, **where)
    if len(rows) == TEXTS_READ_MAX:
        last, place = rows[-1], activity.sort_key_of(rows[-1])
        if activity.is_by_entry:  # the stop lies between entries, so that the way back finds the same rows
            place = (last.entry_no, _MEMBER_MAX if where["descending"] else -1)
            rows = [row for row in rows if row.entry_no != last.entry_no]
        stop = Stop(place, last.booked_at)
    found = []
    for start in range(0, len(rows), _OPENED_AT_ONCE):
        part = rows[start : start + _OPENED_AT_ONCE]
        opened = await open_transactions(bank, part)
        found += [row for row, shown in zip(part, opened, strict=True) if has_text(shown, query.text)]
        if len(found) >= limit:
            return found[:limit], None
        await asyncio.sleep(0)  # others have their turn
    return found, stop


def has_text(opened: TransactionRow, text: str | None) -> bool:
    """Tell whether each word of a text is in a name, title, description, reference or remittance of a transaction."""
    if not text:
        return True
    details = msgspec.json.decode(opened.details)
    values = [opened.title, opened.description, *_texts([details.get(name) for name in _SEARCHED])]
    values += _texts(msgspec.json.decode(opened.remittance or "null"))
    folded = [each.casefold() for each in values]
    return all(any(word in each for each in folded) for word in text.casefold().split())


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _texts(each)


def _place_before(place: Place, *, descending: bool) -> Place:
    """Return the position just before a row, to read it again: its other half may still follow."""
    *first, last = place
    step = 1 if descending else -1
    return (*first, last + step)


TransactionPart = tuple[TransactionRow, int]


def _with_sweeps(rows: list[TransactionRow], query: TransactionQuery, *, last_first: bool) -> list[TransactionPart]:
    if not query.sweeps:
        return [(row, 0) for row in rows]
    parts: list[TransactionPart] = []
    for row in rows:
        both = [(row, 0)] if row.is_hold else [(row, 0), (row, 1)]
        parts += reversed(both) if last_first else both
    return [half for half in parts if _half_matches(_row_of(half), query)]


def _half_matches(row: TransactionRow, query: TransactionQuery) -> bool:
    """Return whether one half of a row matches: a row is read if either half does."""
    return (query.types is None or row.type in query.types) and (
        query.direction is None or row.direction == query.direction
    )


def _row_of(half: TransactionPart) -> TransactionRow:
    row, part = half
    return sweep_of(row) if part else row
