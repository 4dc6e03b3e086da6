"""Earnings of one Pocket, and of all."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime
from typing import Annotated

from litestar import get
from litestar.params import QueryParameter

from billfold.domain import pockets, tbills
from billfold.domain.pockets import Boundary, PocketRow
from billfold.engine.bank import Bank
from billfold.interfaces.http import ids_in
from billfold.interfaces.http.calls import Caller
from billfold.interfaces.http.marks import refuses
from billfold.interfaces.http.shapes.earnings import (
    Earned,
    Earnings,
    EarningsList,
    render_all,
    render_earned,
)
from billfold.interfaces.http.shapes.pocket import valuation
from billfold.kit.dates import et_date, is_day, parse_day
from billfold.kit.errors import InvalidInput, Refused

POCKETS_MAX = 30

Period = Annotated[
    str, QueryParameter(name="period", description="wtd, mtd, ytd, all-time or range.")
]
Bound = Annotated[
    str | None, QueryParameter(description="With period=range: a date or a date-time.")
]


@get(
    "/api/v2/pockets/{pocket_id:str}/earnings/",
    operation_id="get_pocket_earnings",
    opt=refuses("not-found"),
    tags=["earnings"],
)
async def get_pocket_earnings(
    caller: Caller,
    bank: Bank,
    pocket_id: str,
    period: Period = "all-time",
    date_from: Bound = None,
    date_to: Bound = None,
) -> Earnings:
    """Read what one Pocket earned over a period."""
    owner, own_id = await caller.pocket(bank, ids_in.path_uuid("pocket_id", pocket_id))
    row = await pockets.get_pocket(bank.pool, owner, own_id)
    bounds = _bound("date_from", date_from), _bound("date_to", date_to)
    (earned,) = await _earned(bank, [row], period, caller.now, bounds)
    return render_earned(earned, named=False)


@get(
    "/api/v2/earnings/",
    operation_id="list_earnings",
    opt=refuses("not-found", "too-many-pockets"),
    tags=["earnings"],
)
async def list_earnings(
    caller: Caller,
    bank: Bank,
    period: Period = "all-time",
    date_from: Bound = None,
    date_to: Bound = None,
    customer_id: Annotated[str | None, QueryParameter(name="customer_id")] = None,
    pocket_id: Annotated[list[str] | None, QueryParameter(name="pocket_id[]")] = None,
) -> EarningsList:
    """Read what up to 30 Pockets earned, and the exact sum. Default: all that are not closed."""
    rows = await _asked_for(caller, bank, customer_id, pocket_id)
    bounds = _bound("date_from", date_from), _bound("date_to", date_to)
    earned = await _earned(bank, rows, period, caller.now, bounds)
    return render_all(earned, et_date(caller.now))


async def _asked_for(
    caller: Caller, bank: Bank, customer_id: str | None, pocket_id: list[str] | None
) -> list[PocketRow]:
    owner = None
    if customer_id is not None:
        asked = ids_in.query_uuid("customer_id", customer_id)
        owner = await caller.customer_id(bank, asked)
    if pocket_id is None:
        rows = await pockets.list_open(bank.pool, caller.partner_id, owner, limit=POCKETS_MAX + 1)
        if len(rows) > POCKETS_MAX:
            raise _too_many()
        return rows
    ids = list(dict.fromkeys(ids_in.query_uuids("pocket_id[]", pocket_id)))
    if len(ids) > POCKETS_MAX:
        raise _too_many()
    keys = [
        await caller.pocket(bank, each)
        if owner is None
        else (owner, await caller.pocket_of(bank, owner, each))
        for each in ids
    ]
    return await pockets.list_by_id(bank.pool, keys)


async def _earned(
    bank: Bank,
    rows: list[PocketRow],
    period: str,
    now: datetime,
    bounds: tuple[date | None, date | None],
) -> list[Earned]:
    """Every pocket's entry: its states at both ends are read for all of them at once."""
    tbills.period_bounds(period, now, now, *bounds)  # a wrong one is refused without pockets too
    found = [tbills.period_bounds(period, now, row.opened_at, *bounds) for row in rows]
    asked = [
        boundary
        for row, each in zip(rows, found, strict=True)
        for boundary in _boundaries(bank, row, each)
    ]
    states = dict(zip(asked, await pockets.states_before(bank.pool, asked), strict=True))
    return [_entry(bank, row, each, states, now) for row, each in zip(rows, found, strict=True)]


def _boundaries(bank: Bank, row: PocketRow, period: tbills.Period) -> list[Boundary]:
    """The ends of the period at which the pocket's state must be read: not before its opening."""
    ends = [period.start] if period.live else [period.start, period.end]
    return [_boundary(bank, row, at) for at in ends if at > row.opened_at]


def _boundary(bank: Bank, row: PocketRow, at: datetime) -> Boundary:
    return Boundary(row.customer_id, row.pocket_id, bank.calendars.business_date(at), at)


def _entry(
    bank: Bank,
    row: PocketRow,
    period: tbills.Period,
    states: Mapping[Boundary, tbills.PocketState],
    now: datetime,
) -> Earned:
    def at(instant: datetime) -> tbills.PocketState:
        if instant <= row.opened_at:
            return tbills.PocketState()
        return states[_boundary(bank, row, instant)]

    begin = at(period.start)
    end = pockets.state_now(row) if period.live else at(period.end)
    entry = tbills.entry(begin, period.start, end, period.end, bank.market, live=period.live)
    shows_slope = row.real_time_yield and period.live
    valued = valuation(row, bank, now) if shows_slope else None
    return Earned(
        pocket_id=row.pocket_id,
        entry=entry,
        period=period,
        priced_at=valued.pricing_timestamp if valued else None,
        slope=valued.appreciation_per_second if valued else None,
    )


def _bound(name: str, text: str | None) -> date | None:
    """A date, or a date-time with its offset."""
    if text is None:
        return None
    try:
        # A `+` in a query that was not escaped arrives as a space.
        return parse_day(text) if is_day(text) else datetime.fromisoformat(text.replace(" ", "+"))
    except ValueError:
        raise InvalidInput.at(
            "query", name, msg="must be a date or a date-time with its offset", kind="date_parsing"
        ) from None


def _too_many() -> Refused:
    return Refused("too-many-pockets", f"At most {POCKETS_MAX} pockets a call: name them.")


ROUTES = [get_pocket_earnings, list_earnings]
