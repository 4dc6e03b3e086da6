"""Pockets at a glance, for pages: what they can pay now, their yield and next maturity, and their value over days."""

from collections.abc import Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import NamedTuple
from uuid import UUID

from billfold.accounts.pockets import store
from billfold.accounts.pockets.commands import PocketRow
from billfold.accounts.pockets.schemas import valuation
from billfold.accounts.pockets.store import Boundary
from billfold.bills.rules.earnings import value_at
from billfold.ledger.bank import Bank
from billfold.ledger.types import PocketStatus
from billfold.platform.dates import et_date, et_instant

_DAY = timedelta(days=1)


class Overview(NamedTuple):
    """Some Pockets together. `payable` is in cents, of those that are open.

    The yield is the mean of their bills, weighted by market value.
    """

    payable: int
    mean_yield: Decimal | None
    matures_on: date | None


def overview_of(bank: Bank, rows: Sequence[PocketRow], now: datetime) -> Overview:
    """Return the overview of some Pockets; yield and maturity are None without bills."""
    values = [valuation(row, bank, now) for row in rows]
    held = [each for value in values for each in value.positions if each.market_value]
    worth = sum(each.market_value for each in held)
    earned = sum((Decimal(each.yield_to_maturity) * each.market_value for each in held), Decimal(0))
    return Overview(
        payable=sum(
            max(each.payable - row.held_cents(now, bank.calendars), 0)
            for row, each in zip(rows, values, strict=True)
            if row.status == PocketStatus.OPEN
        ),
        mean_yield=earned / worth if worth else None,
        matures_on=min((each.bill.maturity for each in held), default=None),
    )


async def values_by_day(
    bank: Bank, rows: Sequence[PocketRow], days: Sequence[date], now: datetime
) -> dict[UUID, list[int]]:
    """Return the value of each Pocket at the end of each day, Eastern, in one read; 0 before its opening.

    For today it is the current value.
    """
    today = et_date(now)
    ends = {day: et_instant(day + _DAY, time()) for day in days if day < today}
    wanted = [(row, at) for row in rows for at in ends.values() if at > row.opened_at]
    states = await store.pocket_states_before(
        bank.pool,
        [
            Boundary(row.customer_id, row.pocket_id, bank.calendars.business_date(at), at, row.last_entry)
            for row, at in wanted
        ],
    )
    past = {
        (row.pocket_id, at): value_at(each, at, bank.market) for (row, at), each in zip(wanted, states, strict=True)
    }
    return {
        row.pocket_id: [
            past.get((row.pocket_id, ends[day]), 0) if day in ends else valuation(row, bank, now).total_value
            for day in days
        ]
        for row in rows
    }


def days_between(first: date, last: date, *, at_most: int) -> list[date]:
    """Return days of a range at equal intervals, including its last; empty if the range is."""
    span = (last - first).days
    found = [last - _DAY * n for n in range(0, span + 1, abs(span) // at_most + 1)]
    return found[::-1]
