"""Explains earnings: the Pocket at both ends of a period, and the money paid in, paid out and charged in between."""

from collections.abc import Callable
from datetime import date, datetime, timedelta
from enum import StrEnum
from typing import NamedTuple
from uuid import UUID

from billfold.accounts.explain import prices, store
from billfold.accounts.explain.prices import tick_row
from billfold.accounts.explain.schemas import TO_CENT, Explanation, Formula, Row, RowKind, Unit, explain, given
from billfold.accounts.explain.store import ROWS_MAX, MovedMoney, MovedTrade, PocketSpan, trade_rows, transaction_rows
from billfold.accounts.pockets import store as pocket_store
from billfold.accounts.pockets.commands import PocketRow
from billfold.accounts.pockets.earnings_routes import PeriodEnds, earnings_between
from billfold.accounts.pockets.schemas import accrued_cents
from billfold.accounts.pockets.store import Boundary
from billfold.bills.rules import fees
from billfold.bills.rules.earnings import PocketState
from billfold.bills.types import Period
from billfold.http.schemas import format_price
from billfold.ledger.bank import Bank
from billfold.platform.database.connection import Connection
from billfold.platform.dates import et_date, et_instant
from billfold.platform.money import cents_for

_ONE_DAY = timedelta(days=1)
_MOMENT = timedelta(microseconds=1)
_DAYS_MAX = 100
"""Days whose fees are read to explain one charge, including those that accrued before the next state was kept."""


class FeeDays(NamedTuple):
    """The days of a month on which the fee accrued, with the Pocket's holdings at the end of each, and the charges."""

    days: list[tuple[date, PocketState]]
    charges: list[MovedMoney]


async def read_days(conn: Connection, bank: Bank, row: PocketRow, now: datetime) -> FeeDays:
    """Read the days since the last regular charge, at most 33, in the caller's snapshot of the database."""
    charged_at = max(_charged_at(bank, now), row.opened_at)
    stretch = await store.stretch_of(conn, row, Period(charged_at, now, live=True), bank.calendars)
    days = await _days_from(conn, bank, row, charged_at, et_date(now))
    return FeeDays(days, await store.list_charges(conn, stretch))


async def _days_from(
    conn: Connection, bank: Bank, row: PocketRow, since: datetime, until: date
) -> list[tuple[date, PocketState]]:
    first = et_date(since)
    days = [first + timedelta(days=n) for n in range((until - first).days)]
    ends = [et_instant(day + _ONE_DAY, 0) for day in days]
    states = await pocket_store.pocket_states_before(
        conn,
        [
            Boundary(row.customer_id, row.pocket_id, bank.calendars.business_date(at), at=at, through=row.last_entry)
            for at in ends
        ],
    )
    return list(zip(days, states, strict=True))


def explain_fees(bank: Bank, row: PocketRow, of: FeeDays, now: datetime) -> Explanation:
    """Explain the fee that has accrued and is not yet charged, in whole cents."""
    through = [_day(bank, *each) for each in of.days if each[0] <= row.accrued_through]
    # The remainder of an earlier charge is not stored separately: it is the rest of the stored figure.
    carried = row.fee_accrued - sum(each.cents for each in through)
    return _accrued(bank, of, carried, accrued_cents(row, bank, now), label="Fee accrued and not yet charged")


async def explain_charge(
    bank: Bank, customer_id: UUID, pocket_id: UUID, charge: tuple[UUID, int, datetime]
) -> Explanation | None:
    """Explain a charge of the fee, by its transaction, journal entry and instant; None if its states were not kept."""
    charge_id, entry_no, at = charge
    async with bank.pool.acquire() as conn, conn.transaction(isolation="repeatable_read", readonly=True):
        known_at = await store.find_known_at(conn, customer_id, pocket_id, at, entry_no=entry_no)
        if known_at is None:
            return None
        row = await pocket_store.get_pocket(conn, customer_id, pocket_id, known_at)
        charged_at = max(_charged_at(bank, at - _MOMENT), row.opened_at)
        until = max(et_date(at), row.accrued_through + _ONE_DAY)
        if (until - et_date(charged_at)).days > _DAYS_MAX:
            return None
        days = await _days_from(conn, bank, row, charged_at, until)
        stretch = await store.stretch_of(conn, row, Period(charged_at, at, live=True), bank.calendars)
        moved = await store.list_charges(conn, stretch._replace(last_entry_no=row.last_entry or entry_no))
    (own,) = (each.amount for each in moved if each.activity_id == charge_id)
    since = sum(each.amount for each in moved if each.entry_no >= entry_no)
    of = FeeDays([each for each in days if each[0] < et_date(at)], [each for each in moved if each.entry_no < entry_no])
    through = sum(_day(bank, *each).cents for each in days if each[0] <= row.accrued_through)
    carried = row.fee_accrued - through + since * fees.ACCRUED_UNITS_PER_CENT
    return _accrued(bank, of, carried, own, label="Fee charged")


def _accrued(bank: Bank, of: FeeDays, left: int, comes_to: int, *, label: str) -> Explanation:
    """Explain the fee of some days; `left` is the stored figure without them and after their charges."""
    bps, per_cent = bank.terms.aum_fee_bps, fees.ACCRUED_UNITS_PER_CENT
    parts = [_day(bank, day, state) for day, state in of.days]
    charged = sum(each.amount for each in of.charges)
    carried = left + charged * per_cent
    whole, payable = f"floor(A / {per_cent})", []
    if (carried + sum(each.cents for each in parts)) // per_cent - charged > comes_to:
        whole = f"min({whole}, P)"
        payable = [given("P", "What the Pocket could pay; the rest stays accrued", comes_to, Unit.CENTS)]
    return explain(
        label,
        f"Each calendar day accrues {bps} basis points a year, a 365th of them, of what the Pocket held when it ended."
        " Nothing is rounded until a fee is charged: then whole cents are taken, and the rest stays. Fees are charged"
        " on the first business day of a month, and when everything is withdrawn.",
        Formula("A", f"c + sum(a) - k * {per_cent}", Unit.FEE_UNITS, "Accrued and not yet charged"),
        Formula("F", whole, Unit.CENTS, "Fee", "down to whole cents"),
        comes_to=comes_to,
        inputs=[
            given("c", "Carried over from the charge before these days", carried, Unit.FEE_UNITS),
            given("k", "Charged since", charged, Unit.CENTS, rows=transaction_rows(of.charges)),
            *payable,
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
    """Return when the fee was last due for its monthly charge."""
    calendars, first = bank.calendars, et_date(now).replace(day=1)
    regular = calendars.opens_at(calendars.settlement_on_or_after(first))
    if regular <= now:
        return regular
    before = (first - _ONE_DAY).replace(day=1)
    return calendars.opens_at(calendars.settlement_on_or_after(before))


_TRANSFERS = ["SAME_ENTITY_SECURITY_TRANSFER", "EXTERNAL_SECURITY_TRANSFER"]


class EarningsField(StrEnum):
    """The figures of earnings."""

    EARNINGS = "earnings"
    EARNINGS_NET = "earnings_net"
    FEES = "fees"
    REALISED = "realised"
    UNREALISED_CHANGE = "unrealised_change"
    CONTRIBUTIONS = "contributions"
    WITHDRAWALS = "withdrawals"
    START_VALUE = "start_value"
    END_VALUE = "end_value"


class Movements(NamedTuple):
    """The movements of a period, newest first: payments, fees, and bills received, transferred or sold."""

    paid_in: list[MovedMoney]
    paid_out: list[MovedMoney]
    fees: list[MovedMoney]
    transfers: list[MovedTrade]
    sales: list[MovedTrade]


async def read_movements(conn: Connection, of: PocketSpan) -> Movements:
    """Read the movements, in the caller's snapshot of the database."""
    return Movements(
        paid_in=await store.list_transactions(conn, of, direction="CREDIT", is_fee=False),
        paid_out=await store.list_transactions(conn, of, direction="DEBIT", is_fee=False),
        fees=await store.list_transactions(conn, of, is_fee=True),
        transfers=await store.list_trades(conn, of, _TRANSFERS),
        sales=await store.list_trades(conn, of, ["SELL", "MATURITY", *_TRANSFERS]),
    )


class ExplainedEarnings:
    """The explanations of the earnings of one Pocket over a period."""

    def __init__(self, bank: Bank, ends: PeriodEnds, moved: Movements) -> None:
        self._bank, self._ends, self._moved = bank, ends, moved
        self._entry = earnings_between(bank, ends)

    def explain(self, field: EarningsField) -> Explanation:
        """Return the explanation of a figure."""
        explained: dict[EarningsField, Callable[[], Explanation]] = {
            EarningsField.EARNINGS: self._earnings,
            EarningsField.EARNINGS_NET: self._net,
            EarningsField.FEES: self._fees,
            EarningsField.REALISED: self._realised,
            EarningsField.UNREALISED_CHANGE: self._unrealised_change,
            EarningsField.CONTRIBUTIONS: self._contributions,
            EarningsField.WITHDRAWALS: self._withdrawals,
            EarningsField.START_VALUE: lambda: self._value_at_start("S"),
            EarningsField.END_VALUE: lambda: self._value_at_end("E"),
        }
        return explained[field]()

    def _earnings(self) -> Explanation:
        entry = self._entry
        return explain(
            "Earnings",
            "What the value has grown by beyond what was paid in and out, before fees. It is what was realised plus"
            " the change of what is not yet realised.",
            Formula("G", "N + f", Unit.CENTS, "Earnings before fees"),
            comes_to=entry.earnings,
            parts=[self._net(), self._fees()],
        )

    def _net(self) -> Explanation:
        return explain(
            "Earnings after fees",
            "Value at the end, less value at the start, less what was paid in, plus what was paid out.",
            Formula("N", "E - S - i + o", Unit.CENTS, "Earnings after fees"),
            comes_to=self._entry.earnings_net,
            parts=[self._value_at_end("E"), self._value_at_start("S"), self._contributions(), self._withdrawals()],
        )

    # -- movements ----------------------------------------------------------------------

    def _contributions(self) -> Explanation:
        return self._counted(
            "i",
            "Paid in",
            "Payments received, and bills received at their market value.",
            self._entry.contributions,
            ends=(self._ends.start.inflow, self._ends.end.inflow),
            transactions=self._moved.paid_in,
            trades=[each for each in self._moved.transfers if each.incoming],
        )

    def _withdrawals(self) -> Explanation:
        return self._counted(
            "o",
            "Paid out",
            "Payments made, and bills delivered at their market value.",
            self._entry.withdrawals,
            ends=(self._ends.start.outflow, self._ends.end.outflow),
            transactions=self._moved.paid_out,
            trades=[each for each in self._moved.transfers if not each.incoming],
        )

    def _fees(self) -> Explanation:
        return self._counted(
            "f",
            "Fees charged",
            "Fees charged in the period.",
            self._entry.fees,
            ends=(self._ends.start.fees, self._ends.end.fees),
            transactions=self._moved.fees,
        )

    def _realised(self) -> Explanation:
        return self._counted(
            "g",
            "Realised gain",
            "Proceeds of bills sold, matured or delivered, less what they were acquired for.",
            self._entry.realised,
            ends=(self._ends.start.realised, self._ends.end.realised),
            trades=[each for each in self._moved.sales if not each.incoming],
        )

    def _counted(
        self,
        symbol: str,
        label: str,
        words: str,
        value: int,
        *,
        ends: tuple[int, int],
        transactions: list[MovedMoney] | None = None,
        trades: list[MovedTrade] | None = None,
    ) -> Explanation:
        """Explain a counter that runs since the Pocket was opened, from the start to the end of the period."""
        transactions, trades, period = transactions or [], trades or [], self._ends.period
        return explain(
            label,
            words,
            Formula(symbol, "e - s", Unit.CENTS, label),
            comes_to=value,
            inputs=[
                given(
                    "e",
                    f"{label} since the Pocket was opened, up to {period.end:%Y-%m-%d %H:%M} UTC",
                    ends[1],
                    Unit.CENTS,
                ),
                given("s", f"The same up to {period.start:%Y-%m-%d %H:%M} UTC", ends[0], Unit.CENTS),
            ],
            rows=[*transaction_rows(transactions), *trade_rows(trades)],
            more_rows=max(len(transactions), len(trades)) > ROWS_MAX,
        )

    # -- values --------------------------------------------------------------------------

    def _value_at_start(self, symbol: str) -> Explanation:
        start, at = self._ends.start, self._ends.period.start
        return self._value(symbol, "Value at the start", self._entry.start_value, start, at)

    def _value_at_end(self, symbol: str) -> Explanation:
        end, period = self._ends.end, self._ends.period
        label = "Value now" if period.live else "Value at the end"
        return self._value(symbol, label, self._entry.end_value, end, period.end)

    def _value(self, symbol: str, label: str, value: int, state: PocketState, at: datetime) -> Explanation:
        return explain(
            label,
            "Cash, and bills at their price at the last tick, as the portfolio showed them.",
            Formula(symbol, "C + sum(V)", Unit.CENTS, label),
            comes_to=value,
            inputs=[given("C", "Cash", state.cash, Unit.CENTS)],
            parts=self._bills(state, at),
            rows=[Row(kind=RowKind.SNAPSHOT, label=f"The Pocket at {at:%Y-%m-%d %H:%M:%S} UTC", at=at)],
        )

    def _bills(self, state: PocketState, at: datetime) -> list[Explanation]:
        market = self._bank.market
        parts = []
        for cusip, units in state.positions:
            bill, label = market.bill(cusip), f"Market value of {cusip}"
            matured = market.matures_at(bill) <= at
            parts.append(
                explain(
                    label,
                    "Bills times their price, which is per $100 of face value: one bill is $100.",
                    Formula("x", "100 * u * P", Unit.CENTS, "Not yet rounded"),
                    Formula("V", "round(x)", Unit.CENTS, label, TO_CENT),
                    comes_to=cents_for(units, market.mark(bill, at)),
                    inputs=[given("u", "Bills held", units, Unit.UNITS)],
                    parts=[prices.mark(market, bill, market.tick_at(at), matured=matured)],
                )
            )
        return parts

    def _unrealised_change(self) -> Explanation:
        ends, period = self._ends, self._ends.period
        start = self._unrealised("a", "Unrealised at the start", ends.start, period.start)
        end = self._unrealised("z", "Unrealised at the end", ends.end, period.end)
        return explain(
            "Change of the unrealised gain",
            "What bills held at the end are worth beyond what they were acquired for, less the same at the start.",
            Formula("U", "z - a", Unit.CENTS, "Change of the unrealised gain"),
            comes_to=self._entry.unrealised_change,
            parts=[end, start],
        )

    def _unrealised(self, symbol: str, label: str, state: PocketState, at: datetime) -> Explanation:
        parts = self._bills(state, at)
        return explain(
            label,
            "Market value of the bills, less what they were acquired for.",
            Formula(symbol, "sum(V) - b", Unit.CENTS, label),
            comes_to=sum(each.cents for each in parts) - state.earnings_basis,
            inputs=[given("b", "Acquired for", state.earnings_basis, Unit.CENTS)],
            parts=parts,
        )
