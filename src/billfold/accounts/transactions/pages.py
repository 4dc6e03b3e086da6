"""Pages of transactions at every level, with the sweep beside each when requested."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from functools import partial
from typing import Annotated, Any, NamedTuple
from uuid import UUID

import msgspec

from billfold.accounts.transactions import store as transaction_store
from billfold.accounts.transactions.store import TransactionFilters, TransactionRow, swept
from billfold.http.list_params import CentsQuery, ListQuery, Since, Until, texts_among
from billfold.http.parameters import Query, parse_choice
from billfold.ledger.bank import Bank
from billfold.platform.paging import Page, SortKey

TYPES = frozenset({"ACH", "WIRE", "CARD", "ON_US", "FEE", "CREDIT", "GENERIC"})


class RowRange(NamedTuple):
    """Which rows to read: on from the key of a row, or `including` it."""

    filters: TransactionFilters
    key: SortKey | None
    including: bool
    descending: bool
    limit: int


Fetch = Callable[[RowRange], Awaitable[list[TransactionRow]]]


_DIRECTIONS = ("DEBIT", "CREDIT")
_DIRECTION = Query(parse=partial(parse_choice, _DIRECTIONS), schema={"type": "string", "enum": [*_DIRECTIONS]})


class TransactionQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which transactions: every filter None lets all through."""

    pockets: Annotated[list[UUID] | None, Query(name="pocket[]")] = None
    types: Annotated[list[str] | None, texts_among("type[]", TYPES)] = None
    direction: Annotated[str | None, _DIRECTION] = None
    time_booked_from: Since = None
    time_booked_to: Until = None
    time_settled_from: Since = None
    time_settled_to: Until = None
    amount_from: CentsQuery = None
    amount_to: CentsQuery = None
    transfers: Annotated[list[UUID] | None, Query(name="on_us_transfer[]")] = None
    wires: Annotated[list[UUID] | None, Query(name="wire[]")] = None
    portals: Annotated[list[UUID] | None, Query(name="portal[]")] = None
    cards: Annotated[list[UUID] | None, Query(name="card[]")] = None
    sweeps: bool = False

    def filters(self, now: datetime) -> TransactionFilters:
        """What to read."""
        same: dict[str, Any] = {
            name: getattr(self, name) for name in ("direction", "amount_from", "amount_to", "sweeps")
        }
        # Details spell ids as text.
        ids: dict[str, Any] = {
            name: [str(each) for each in getattr(self, name) or ()] or None
            for name in ("transfers", "wires", "portals", "cards")
        }
        return TransactionFilters(
            now=now,
            types=self.types or None,
            booked_from=self.time_booked_from,
            booked_to=self.time_booked_to,
            settled_from=self.time_settled_from,
            settled_to=self.time_settled_to,
            **same,
            **ids,
        )


class SweepQuery(TransactionQuery, frozen=True, kw_only=True):
    """The same for partners, who can ask for sweeps."""

    types: Annotated[list[str] | None, texts_among("type[]", TYPES | {"SWEEP"})] = None
    sweeps: Annotated[
        bool,
        Query(
            name="include_sweeps",
            description="true puts in the sweep beside each transaction. A fee has none: it is "
            "taken from the brokerage account.",
        ),
    ] = False

    def __post_init__(self) -> None:
        if not self.sweeps:
            for each in self.types or ():
                parse_choice(sorted(TYPES), "type[]", each)


async def transaction_page(
    bank: Bank,
    wanted: ListQuery,
    asked: TransactionQuery,
    now: datetime,
    *,
    scope: str,
    key_of: Callable[[TransactionRow], SortKey],
    fetch: Fetch,
) -> Page[TransactionRow]:
    """One page. A place is the row's key and 0 for the activity or 1 for its sweep."""
    filters: dict[str, object] = {**msgspec.to_builtins(asked), "descending": wanted.descending}
    position = wanted.position(bank.pager, scope, filters)
    backwards = position is not None and position.direction == "prev"
    descending = wanted.descending != backwards
    place = position.place if position else None
    key = place[:-1] if place else None
    # With sweeps the row of the place is read again: its other half may still be to come.
    rows = await fetch(RowRange(asked.filters(now), key, asked.sweeps, descending=descending, limit=wanted.limit + 2))
    parts = _with_sweeps(rows, asked, last_first=backwards)
    if place is not None and asked.sweeps:
        shown = [(*key_of(row), part) for row, part in parts]
        parts = parts[shown.index(place) + 1 :] if place in shown else parts
    page = bank.pager.page(
        scope,
        filters,
        parts[: wanted.limit + 1],
        limit=wanted.limit,
        start=position,
        sort_key_of=lambda half: (*key_of(half[0]), half[1]),
    )
    return Page([_row_of(half) for half in page.items], page.next_page, page.prev_page)


async def customer_transaction_page(
    bank: Bank, wanted: ListQuery, asked: TransactionQuery, now: datetime, scope: str, of: tuple[UUID, list[UUID]]
) -> Page[TransactionRow]:
    """A page of some pockets of one customer, whose journals number their activity."""
    return await transaction_page(
        bank,
        wanted,
        asked,
        now=now,
        scope=scope,
        key_of=lambda row: (row.entry_no, row.posting_no),
        fetch=partial(fetch_customer_transactions, bank, *of),
    )


async def fetch_customer_transactions(bank: Bank, owner: UUID, own: list[UUID], rows: RowRange) -> list[TransactionRow]:
    """The activity of some pockets of one customer; the key is (entry_no, posting_no)."""
    after = None
    if rows.key is not None:
        step = (1 if rows.descending else -1) if rows.including else 0
        after = (int(rows.key[0]), int(rows.key[1]) + step)
    return await transaction_store.list_customer_rows(
        bank.pool, owner, own, filters=rows.filters, after=after, descending=rows.descending, limit=rows.limit
    )


TransactionPart = tuple[TransactionRow, int]


def _with_sweeps(rows: list[TransactionRow], asked: TransactionQuery, *, last_first: bool) -> list[TransactionPart]:
    if not asked.sweeps:
        return [(row, 0) for row in rows]
    parts: list[TransactionPart] = []
    for row in rows:
        both = [(row, 0), (row, 1)] if row.swept else [(row, 0)]
        parts += reversed(both) if last_first else both
    return [half for half in parts if _matches(_row_of(half), asked)]


def _matches(row: TransactionRow, asked: TransactionQuery) -> bool:
    """Tell whether one half of a row matches: a row is read when either half does."""
    return (asked.types is None or row.type in asked.types) and (
        asked.direction is None or row.direction == asked.direction
    )


def _row_of(half: TransactionPart) -> TransactionRow:
    row, part = half
    return swept(row) if part else row
