"""Earnings of one Pocket, and of all."""

from collections.abc import Sized
from datetime import date, datetime
from typing import Annotated, Literal, NamedTuple
from uuid import UUID

import msgspec

from billfold.accounts.pockets import schemas, store
from billfold.accounts.pockets.commands import PocketRow
from billfold.accounts.pockets.overview import days_between, values_by_day
from billfold.accounts.pockets.store import Boundary
from billfold.bills.rules import earnings
from billfold.bills.rules.earnings import EarningsEntry, PocketState, require_prices
from billfold.bills.types import EarningsPeriod, Period
from billfold.http.caller import Call
from billfold.http.operations import SIGNED, get, with_scope
from billfold.http.parameters import DayQuery, Query
from billfold.http.schemas import Amount, usd
from billfold.identity.partners.caller import Caller
from billfold.ledger.bank import Bank
from billfold.oauth.caller import CustomerCaller
from billfold.platform.database.connection import Db
from billfold.platform.dates import DAY_RANGE, et_date, is_day, parse_day, require_in_range
from billfold.platform.errors import InvalidInput, Refused

POCKETS_MAX = 30


def _parse_bound(name: str, text: str) -> date:
    """Return a date, or a date-time with its offset."""
    try:
        # An unescaped `+` in a query arrives as a space.
        return parse_day(text) if is_day(text) else require_in_range(datetime.fromisoformat(text.replace(" ", "+")))
    except ValueError:
        wrong = f"must be a date or a date-time with its offset, {DAY_RANGE}"
        raise InvalidInput.at("query", name, msg=wrong, kind="date_parsing") from None


BoundText = Annotated[
    date | None,
    Query(parse=_parse_bound, schema={"type": "string"}, description="With period=range: a date or a date-time."),
]


class EarningsQuery(msgspec.Struct, frozen=True, kw_only=True):
    """The period of the requested earnings."""

    period: Annotated[EarningsPeriod, Query()] = "all-time"
    date_from: BoundText = None
    date_to: BoundText = None


class PeriodEnds(NamedTuple):
    """A period of a pocket, and its states at both ends."""

    row: PocketRow
    period: Period
    start: PocketState
    end: PocketState


async def read_ends(
    conn: Db, bank: Bank, rows: list[PocketRow], query: EarningsQuery, now: datetime
) -> list[PeriodEnds]:
    """Return the period of every pocket; the states at both ends are read for all pockets together."""
    name, bounds = query.period, (query.date_from, query.date_to)
    earnings.period_bounds(name, now, now, *bounds)  # an invalid one is refused even without pockets
    earnings.require_prices(bank.market, date_from=query.date_from, date_to=query.date_to)
    periods = [earnings.period_bounds(name, now, row.opened_at, *bounds) for row in rows]
    ends = [boundary for row, each in zip(rows, periods, strict=True) for boundary in _boundaries(bank, row, each)]
    states = dict(zip(ends, await store.pocket_states_before(conn, ends), strict=True))

    def at(row: PocketRow, instant: datetime) -> PocketState:
        return PocketState() if instant <= row.opened_at else states[_boundary(bank, row, instant)]

    return [
        PeriodEnds(
            row,
            each,
            start=at(row, each.start),
            end=store.current_pocket_state(row) if each.live else at(row, each.end),
        )
        for row, each in zip(rows, periods, strict=True)
    ]


def earnings_between(bank: Bank, ends: PeriodEnds) -> EarningsEntry:
    """Return the earnings of a pocket between both ends."""
    period = ends.period
    return earnings.compute_earnings(ends.start, period.start, ends.end, end_at=period.end, market=bank.market)


async def pocket_earnings(
    bank: Bank, rows: list[PocketRow], query: EarningsQuery, now: datetime
) -> list[schemas.PocketEarnings]:
    """Return the entry of every pocket."""
    return [
        _earnings_entry(bank, each, query, now=now) for each in await read_ends(bank.pool, bank, rows, query, now=now)
    ]


def _boundaries(bank: Bank, row: PocketRow, period: Period) -> list[Boundary]:
    """Return the ends of the period at which the pocket's state must be read, not before its opening."""
    ends = [period.start] if period.live else [period.start, period.end]
    return [_boundary(bank, row, at) for at in ends if at > row.opened_at]


def _boundary(bank: Bank, row: PocketRow, at: datetime) -> Boundary:
    return Boundary(row.customer_id, row.pocket_id, bank.calendars.business_date(at), at, row.last_entry)


def _earnings_entry(bank: Bank, ends: PeriodEnds, query: EarningsQuery, now: datetime) -> schemas.PocketEarnings:
    row, period = ends.row, ends.period
    shows_appreciation = row.real_time_yield and period.live
    current_value = schemas.valuation(row, bank, now) if shows_appreciation else None
    return schemas.PocketEarnings(
        pocket_id=row.pocket_id,
        entry=earnings_between(bank, ends),
        dates=earnings.shown_dates(query.period, period, bank.calendars),
        priced_at=current_value.pricing_timestamp if current_value else None,
        slope=current_value.appreciation_per_second if current_value else None,
    )


READS = with_scope("pockets.read", "earnings")
Pockets = Annotated[list[UUID] | None, Query(name="pocket_id[]")]
_REFUSES = ("not-found", "too-many-pockets")


@get("/api/v2/pockets/{pocket_id}/earnings/", SIGNED, READS, as_of=True)
async def get_pocket_earnings(caller: Call, bank: Bank, pocket_id: UUID, query: EarningsQuery) -> schemas.Earnings:
    """Get earnings of a Pocket.

    Returns earnings over a period.
    """
    owner, own_id = await caller.pocket(bank, pocket_id)
    row = await store.get_pocket(bank.pool, owner, own_id, caller.as_of)
    (earned,) = await pocket_earnings(bank, [row], query, now=caller.now)
    return schemas.render_earned(earned, with_pocket_id=False)


@get("/api/v2/earnings/", refuses=_REFUSES, as_of=True)
async def list_earnings(
    caller: Caller, bank: Bank, query: EarningsQuery, customer_id: UUID | None = None, pocket_id: Pockets = None
) -> schemas.EarningsList:
    """List earnings.

    Returns earnings of up to 30 Pockets, and the exact sum. Default: all that are not closed.
    """
    owner = None if customer_id is None else await caller.owner(bank, customer_id)
    return await _list_earnings(caller, bank, query, owner=owner, pocket_ids=pocket_id)


@get("/api/v2/earnings/", READS, name="list_earnings", refuses=_REFUSES, as_of=True)
async def list_own_earnings(
    *, member: CustomerCaller, bank: Bank, query: EarningsQuery, pocket_id: Pockets = None
) -> schemas.EarningsList:
    """List earnings.

    Returns earnings of up to 30 Pockets, and the exact sum. Default: all that are not closed.
    """
    return await _list_earnings(member, bank, query, owner=await member.owner(bank, None), pocket_ids=pocket_id)


async def _list_earnings(
    caller: Call, bank: Bank, query: EarningsQuery, owner: UUID | None, pocket_ids: list[UUID] | None
) -> schemas.EarningsList:
    if pocket_ids is None:
        rows = await store.list_open(bank.pool, caller.partner_id, owner, limit=POCKETS_MAX + 1, as_of=caller.as_of)
    else:
        ids = list(dict.fromkeys(pocket_ids))
        _check_number(ids)
        keys = [await caller.pocket(bank, each, owner) for each in ids]
        rows = await store.list_by_id(bank.pool, keys, caller.as_of)
    _check_number(rows)
    earned = await pocket_earnings(bank, rows, query, now=caller.now)
    return schemas.render_all(earned, bank.calendars.settlement_on_or_before(et_date(caller.now)))


def _check_number(pockets: Sized) -> None:
    if len(pockets) > POCKETS_MAX:
        raise Refused("too-many-pockets", f"At most {POCKETS_MAX} pockets a call: name them.")


VALUES_MAX = 100


class DayValue(msgspec.Struct, kw_only=True):
    """The value of a Pocket at the end of a day, Eastern; for today, its current value."""

    date: date
    total_value: Amount


class PocketValues(msgspec.Struct, kw_only=True):
    """Values of days at equal intervals, oldest first. The last is that of the last day of the range."""

    items: list[DayValue]
    object_type: Literal["PocketValues"] = "PocketValues"


@get("/api/v2/pockets/{pocket_id}/values/", SIGNED, READS, tag="earnings", as_of=True)
async def list_pocket_values(
    caller: Call,
    bank: Bank,
    pocket_id: UUID,
    date_from: Annotated[DayQuery, Query(description="A date; by default that of the Pocket's opening.")] = None,
    date_to: Annotated[DayQuery, Query(description="A date; today by default.")] = None,
) -> PocketValues:
    """List values of a Pocket.

    Returns its total value at the end of each day of a range, as in its earnings. For a range of more than 100 days
    there is a value every second day, or every third, and so on.
    """
    require_prices(bank.market, date_from=date_from, date_to=date_to)
    row = await store.get_pocket(bank.pool, *await caller.pocket(bank, pocket_id), as_of=caller.as_of)
    today = et_date(caller.now)
    last = min(date_to or today, today)
    first = max(date_from or et_date(row.opened_at), et_date(row.opened_at))
    days = days_between(first, last, at_most=VALUES_MAX)
    values = (await values_by_day(bank, [row], days, caller.now))[row.pocket_id]
    return PocketValues(
        items=[DayValue(date=day, total_value=usd(cents)) for day, cents in zip(days, values, strict=True)]
    )
