"""The fee on assets explained: what accrued on each day since the last regular charge, and its whole cents."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from billfold.accounts.explain import store
from billfold.accounts.explain.prices import tick_row
from billfold.accounts.explain.rows import transaction_rows
from billfold.accounts.explain.schemas import Explanation, Formula, Unit, explain, given
from billfold.accounts.explain.store import MovedMoney
from billfold.accounts.pockets import history
from billfold.accounts.pockets.history import Boundary
from billfold.accounts.pockets.schemas import accrued_cents
from billfold.bills.rules import fees
from billfold.bills.rules.earnings import PocketState
from billfold.bills.types import Period
from billfold.http.schemas import format_price
from billfold.platform.dates import et_date, et_instant
from billfold.platform.money import cents_for

if TYPE_CHECKING:
    from billfold.accounts.pockets.types import PocketRow
    from billfold.ledger.bank import Bank
    from billfold.platform.database.connection import (Connection)

_ONE_DAY = timedelta(days=1)


class FeeDays(NamedTuple):
    """The days of a month on which the fee accrued, with what the Pocket held when each ended, and what was charged."""

    days: list[tuple[date, PocketState]]
    charges: list[MovedMoney]


async def read_days(conn: Connection, bank: Bank, row: PocketRow, now: datetime) -> FeeDays:
    """Read the days since the last regular charge, which are 33 at most, in the caller's snapshot of the database."""
    calendars, today = bank.calendars, et_date(now)
    charged_at = max(_charged_at(bank, now), row.opened_at)
    first = max(et_date(charged_at), et_date(row.opened_at))
    days = [first + timedelta(days=n) for n in range((today - first).days)]
    ends = [et_instant(day + _ONE_DAY, 0) for day in days]
    states = await history.pocket_states_before(
        conn, [Boundary(row.customer_id, row.pocket_id, calendars.business_date(at), at=at) for at in ends]
    )
    stretch = await store.stretch_of(conn, row, Period(charged_at, now, live=True), calendars)
    return FeeDays(list(zip(days, states, strict=True)), await store.list_charges(conn, stretch))


def explain_fees(bank: Bank, row: PocketRow, of: FeeDays, now: datetime) -> Explanation:
    """Explain the fee that has accrued and is not yet charged, in whole cents."""
    bps = bank.terms.aum_fee_bps
    parts = [_day(bank, day, state) for day, state in of.days]
    stored = sum(each.cents for each, (day, _) in zip(parts, of.days, strict=True) if day <= row.accrued_through)
    charged = sum(each.amount for each in of.charges)
    # What an earlier charge left is not kept apart: it is what remains of the stored figure.
    carried = row.fee_accrued - stored + charged * fees.ACCRUED_UNITS_PER_CENT
    return explain(
        "Fee accrued and not yet charged",
        f"Each calendar day accrues {bps} basis points a year, a 365th of them, of what the Pocket held when it ended."
        " Nothing is rounded until a fee is charged: then whole cents are taken, and the rest stays. Fees are charged"
        " on the first business day of a month, and when everything is withdrawn.",
        Formula("A", f"c + sum(a) - k * {fees.ACCRUED_UNITS_PER_CENT}", Unit.FEE_UNITS, "Accrued and not yet charged"),
        Formula("F", f"floor(A / {fees.ACCRUED_UNITS_PER_CENT})", Unit.CENTS, "Fee", "down to whole cents"),
        comes_to=accrued_cents(row, bank, now),
        inputs=[
            given("c", "Carried over from the charge before these days", carried, Unit.FEE_UNITS),
            given("k", "Charged since", charged, Unit.CENTS, rows=transaction_rows(of.charges)),
        ],
        parts=parts,
    )


def _day(bank: Bank, day: date, state: PocketState) -> Explanation:
    closes_at = bank.calendars.closes_at
    close = closes_at(bank.calendars.pricing_day(closes_at(day)))
    bills, bps = [], bank.terms.aum_fee_bps
    for cusip, units in state.positions:
        bill, mark = bank.market.bill(cusip), bank.market.closing_mark(cusip, day)
        label = f"{units} bills of {cusip} at {format_price(mark)}"
        row = tick_row(bill, mark, close, label="Price at the close")
        row.units = units
        bills.append(given("v", label, cents_for(units, mark), Unit.CENTS, rows=[row]))
    value = state.cash + sum(int(each.value) for each in bills)
    return explain(
        f"Fee of {day}",
        "Cash and bills at the price of the close, times basis points. 3,650,000 such units are one cent.",
        Formula("B", "max(0, C + sum(v))", Unit.CENTS, "Base"),
        Formula("a", "B * p", Unit.FEE_UNITS, f"Fee of {day}"),
        comes_to=fees.accrue_fee(value, bps, 1),
        inputs=[
            given("C", "Cash at the end of the day", state.cash, Unit.CENTS),
            *bills,
            given("p", "Basis points a year", bps, Unit.BASIS_POINTS),
        ],
    )


def _charged_at(bank: Bank, now: datetime) -> datetime:
    """Return when the fee was last to be charged as every month."""
    calendars, first = bank.calendars, et_date(now).replace(day=1)
    regular = calendars.opens_at(calendars.settlement_on_or_after(first))
    if regular <= now:
        return regular
    before = (first - _ONE_DAY).replace(day=1)
    return calendars.opens_at(calendars.settlement_on_or_after(before))
