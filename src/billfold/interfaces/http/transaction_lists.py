"""Pages of transactions at every level, sweeps put in beside their activity when asked for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, date, datetime, timedelta
from functools import partial
from typing import Annotated
from uuid import UUID

import msgspec
from litestar.di import Provide
from litestar.params import QueryParameter

from billfold.domain import activity
from billfold.domain.activity import ActivityRow, Wanted, swept
from billfold.engine.bank import Bank
from billfold.interfaces.http import ids_in
from billfold.interfaces.http.lists import CentsText, ListQuery, Since, Until
from billfold.kit.dates import et_instant, is_day, parse_day
from billfold.kit.errors import InvalidInput
from billfold.kit.paging import Page, Place

TYPES = frozenset({"ACH", "WIRE", "CARD", "ON_US", "FEE", "CREDIT", "GENERIC"})
Fetch = Callable[[Wanted, Place | None, bool, bool, int], Awaitable[list[ActivityRow]]]
"""(wanted, key, including it, descending, limit): rows on from the key of a row."""


class TransactionQuery(msgspec.Struct, frozen=True, kw_only=True):
    """The filters of a request, as they were sent."""

    pockets: list[UUID] | None
    types: list[str] | None
    direction: str | None
    booked: tuple[datetime | None, datetime | None]
    settled: tuple[datetime | None, datetime | None]
    amounts: tuple[int | None, int | None]
    transfers: list[str] | None
    wires: list[str] | None
    portals: list[str] | None
    cards: list[str] | None
    sweeps: bool

    def wanted(self, now: datetime) -> Wanted:
        """What to read."""
        return Wanted(
            now=now,
            types=self.types,
            direction=self.direction,
            amount_from=self.amounts[0],
            amount_to=self.amounts[1],
            booked_from=self.booked[0],
            booked_to=self.booked[1],
            settled_from=self.settled[0],
            settled_to=self.settled[1],
            transfers=self.transfers,
            wires=self.wires,
            portals=self.portals,
            cards=self.cards,
            sweeps=self.sweeps,
        )


def _query(
    *,
    pocket: Annotated[list[str] | None, QueryParameter(name="pocket[]")] = None,
    types: Annotated[list[str] | None, QueryParameter(name="type[]")] = None,
    direction: Annotated[str | None, QueryParameter(description="DEBIT or CREDIT.")] = None,
    time_booked_from: Since = None,
    time_booked_to: Until = None,
    time_settled_from: Since = None,
    time_settled_to: Until = None,
    amount_from: CentsText = None,
    amount_to: CentsText = None,
    on_us_transfer: Annotated[list[str] | None, QueryParameter(name="on_us_transfer[]")] = None,
    wire: Annotated[list[str] | None, QueryParameter(name="wire[]")] = None,
    portal: Annotated[list[str] | None, QueryParameter(name="portal[]")] = None,
    card: Annotated[list[str] | None, QueryParameter(name="card[]")] = None,
    sweeps: bool,
) -> TransactionQuery:
    return TransactionQuery(
        pockets=None if pocket is None else ids_in.query_uuids("pocket[]", pocket),
        types=among("type[]", types, TYPES | {"SWEEP"} if sweeps else TYPES),
        direction=one_of("direction", direction, ("DEBIT", "CREDIT")),
        booked=(instant("time_booked_from", time_booked_from),
                through("time_booked_to", time_booked_to)),
        settled=(instant("time_settled_from", time_settled_from),
                 through("time_settled_to", time_settled_to)),
        amounts=(cents("amount_from", amount_from), cents("amount_to", amount_to)),
        transfers=named("on_us_transfer[]", on_us_transfer),
        wires=named("wire[]", wire),
        portals=named("portal[]", portal),
        cards=named("card[]", card),
        sweeps=sweeps,
    )  # fmt: skip


def named(name: str, texts: list[str] | None) -> list[str] | None:
    """The ids as details spell them. Raises InvalidInput at query.`name`."""
    return [str(each) for each in ids_in.query_uuids(name, texts or [])] or None


def _asked_for_sweeps(
    include_sweeps: Annotated[
        str | None,
        QueryParameter(
            description="true puts in the sweep beside each transaction. A fee has none: it is "
            "taken from the brokerage account."
        ),
    ] = None,
) -> bool:
    return one_of("include_sweeps", include_sweeps, ("true", "false")) == "true"


def _no_sweeps() -> bool:
    return False


_QUERY = Provide(_query, sync_to_thread=False)
FILTERS = {"asked": _QUERY, "sweeps": Provide(_asked_for_sweeps, sync_to_thread=False)}
WITHOUT_SWEEPS = {"asked": _QUERY, "sweeps": Provide(_no_sweeps, sync_to_thread=False)}
"""Only partners can ask for sweeps."""


async def transaction_page(
    bank: Bank,
    wanted: ListQuery,
    asked: TransactionQuery,
    now: datetime,
    *,
    scope: str,
    key_of: Callable[[ActivityRow], Place],
    fetch: Fetch,
) -> Page[ActivityRow]:
    """One page. A place is the row's key and 0 for the activity or 1 for its sweep."""
    filters: dict[str, object] = {**msgspec.to_builtins(asked), "descending": wanted.descending}
    position = wanted.position(bank.pager, scope, filters)
    backwards = position is not None and position.direction == "prev"
    descending = wanted.descending != backwards
    place = position.place if position else None
    key = place[:-1] if place else None
    # With sweeps the row of the place is read again: its other half may still be to come.
    rows = await fetch(asked.wanted(now), key, asked.sweeps, descending, wanted.limit + 2)
    halves = _halves(rows, asked, last_first=backwards)
    if place is not None and asked.sweeps:
        shown = [(*key_of(row), part) for row, part in halves]
        halves = halves[shown.index(place) + 1 :] if place in shown else halves
    page = bank.pager.page(
        scope,
        filters,
        halves[: wanted.limit + 1],
        limit=wanted.limit,
        came_from=position,
        place_of=lambda half: (*key_of(half[0]), half[1]),
    )
    return Page([_shown(half) for half in page.items], page.next_page, page.prev_page)


async def numbered_page(
    bank: Bank,
    wanted: ListQuery,
    asked: TransactionQuery,
    now: datetime,
    scope: str,
    of: tuple[UUID, list[UUID]],
) -> Page[ActivityRow]:
    """A page of some pockets of one customer, whose journals number their activity."""
    return await transaction_page(
        bank,
        wanted,
        asked,
        now,
        scope=scope,
        key_of=lambda row: (row.journal_no, row.leg_no),
        fetch=partial(_numbered, bank, *of),
    )


async def _numbered(
    bank: Bank,
    owner: UUID,
    own: list[UUID],
    wanted: Wanted,
    key: Place | None,
    including: bool,  # noqa: FBT001 - one of many of a page
    descending: bool,  # noqa: FBT001 - as above
    limit: int,
) -> list[ActivityRow]:
    return await numbered_rows(
        bank, owner, own, wanted, key, including=including, descending=descending, limit=limit
    )


async def numbered_rows(
    bank: Bank,
    owner: UUID,
    own: list[UUID],
    wanted: Wanted,
    key: Place | None,
    *,
    including: bool,
    descending: bool,
    limit: int,
) -> list[ActivityRow]:
    """The activity of some pockets of one customer on from (journal_no, leg_no), or with it."""
    after = None
    if key is not None:
        step = (1 if descending else -1) if including else 0
        after = (int(key[0]), int(key[1]) + step)
    if len(own) == 1:
        return await activity.list_of_pocket(
            bank.pool, owner, own[0], wanted, after=after, descending=descending, limit=limit
        )
    return await activity.list_of_customer(
        bank.pool, owner, own, wanted, after=after, descending=descending, limit=limit
    )


Half = tuple[ActivityRow, int]


def _halves(rows: list[ActivityRow], asked: TransactionQuery, *, last_first: bool) -> list[Half]:
    if not asked.sweeps:
        return [(row, 0) for row in rows]
    halves: list[Half] = []
    for row in rows:
        both = [(row, 0), (row, 1)] if row.swept else [(row, 0)]
        halves += reversed(both) if last_first else both
    return [half for half in halves if _is_asked(_shown(half), asked)]


def _is_asked(row: ActivityRow, asked: TransactionQuery) -> bool:
    """A row is read for the sake of either half: tell whether this one was meant."""
    return (asked.types is None or row.type in asked.types) and (
        asked.direction is None or row.direction == asked.direction
    )


def _shown(half: Half) -> ActivityRow:
    row, part = half
    return swept(row) if part else row


def among(name: str, asked: list[str] | None, known: frozenset[str]) -> list[str] | None:
    """The texts, all of them known. Raises InvalidInput at query.`name`."""
    if asked is not None and not known.issuperset(asked):
        raise InvalidInput.at("query", name, msg=f"must be among {', '.join(sorted(known))}")
    return asked or None


def one_of(name: str, text: str | None, known: tuple[str, ...]) -> str | None:
    """The text, a known one. Raises InvalidInput at query.`name`."""
    if text is not None and text not in known:
        raise InvalidInput.at("query", name, msg=f"must be one of {', '.join(known)}")
    return text


def instant(name: str, text: str | None) -> datetime | None:
    """A date-time with its offset, or the first instant of a date. Raises InvalidInput."""
    if text is None:
        return None
    at = None
    try:
        if is_day(text):
            return et_instant(parse_day(text), 0)
        # A `+` in a query that was not escaped arrives as a space.
        read = datetime.fromisoformat(text.replace(" ", "+"))
        at = read.astimezone(UTC) if read.tzinfo else None
    except (ValueError, OverflowError):
        pass
    if at is None:
        raise InvalidInput.at(
            "query", name, msg="must be a date or a date-time with its offset", kind="date_parsing"
        )
    return at


def through(name: str, text: str | None) -> datetime | None:
    """The instant at which a list ends: a date is in it with all its hours. Raises InvalidInput."""
    at = instant(name, text)
    if at is None or text is None or not is_day(text):
        return at
    last = parse_day(text)
    return None if last == date.max else et_instant(last + timedelta(days=1), 0)


def day(name: str, text: str | None) -> date | None:
    """A date. Raises InvalidInput."""
    if text is None:
        return None
    try:
        return parse_day(text)
    except ValueError:
        raise InvalidInput.at(
            "query", name, msg="must be a date, like 2025-06-02", kind="date_parsing"
        ) from None


def cents(name: str, text: str | None) -> int | None:
    """A whole number of cents. Raises InvalidInput."""
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= 18):  # noqa: PLR2004 - fits 64 bits
        raise InvalidInput.at(
            "query", name, msg="must be a whole number of cents", kind="int_parsing"
        )
    return int(text)
