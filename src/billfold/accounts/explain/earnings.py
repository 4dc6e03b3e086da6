"""Earnings explained: the Pocket at both ends of a period, and what was paid in, paid out and charged between."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from billfold.accounts.earnings.routes import PeriodEnds, earnings_between
from billfold.accounts.explain import prices, store
from billfold.accounts.explain.rows import trade_rows, transaction_rows
from billfold.accounts.explain.schemas import TO_CENT, Explanation, Formula, Row, RowKind, Unit, explain, given
from billfold.accounts.explain.store import ROWS_MAX, MovedMoney, MovedTrade, Stretch
from billfold.bills.rules.earnings import PocketState
from billfold.platform.money import cents_for

if TYPE_CHECKING:
    from billfold.ledger.bank import Bank
    from billfold.platform.database.connection import (Connection)

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
    """What moved in a period, the newest first: payments, fees, and bills that came, went or were sold."""

    paid_in: list[MovedMoney]
    paid_out: list[MovedMoney]
    fees: list[MovedMoney]
    transfers: list[MovedTrade]
    sales: list[MovedTrade]


async def read_movements(conn: Connection, of: Stretch) -> Movements:
    """Read what moved, in the caller's snapshot of the database."""
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
            parts=[
                self._value_at_end("E"),
                self._value_at_start("S"),
                self._contributions(),
                self._withdrawals(),
            ],
        )

    # -- what moved ----------------------------------------------------------------------

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
        """Explain what has run up since the Pocket was opened, from the start to the end of the period."""
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
