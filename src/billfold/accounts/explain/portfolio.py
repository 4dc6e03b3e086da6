"""Explains the amounts of a Pocket's portfolio, down to its lots, prices and trades."""

from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from functools import cached_property
from typing import NamedTuple

from msgspec import UNSET

from billfold.accounts.explain import prices, store
from billfold.accounts.explain.schemas import TO_CENT, Explanation, Formula, Input, Row, RowKind, Unit, explain, given
from billfold.accounts.explain.store import hold_row, lot_row
from billfold.accounts.pockets.as_of_store import JOURNAL_NO_MAX
from billfold.accounts.pockets.commands import PocketRow
from billfold.accounts.pockets.schemas import accrued_cents, portfolio_of, positions_of, valuation
from billfold.bills.rules.market import Market
from billfold.bills.rules.pricing import subtract_spread
from billfold.bills.rules.valuation import PositionValue, Valuation
from billfold.http.schemas import usd
from billfold.ledger.bank import Bank
from billfold.platform.database.connection import Connection
from billfold.platform.dates import et_date
from billfold.platform.errors import InvalidInput, NotFound
from billfold.platform.money import cents_for

_MOVES_CASH = ["BUY", "SELL", "MATURITY"]
_APPRECIATION_DECIMALS = 12


class PortfolioField(StrEnum):
    """The figures of a Pocket; the last three are those of one bill in it."""

    TOTAL_VALUE = "total_value"
    BILLS_VALUE = "bills_value"
    CASH = "cash"
    LIQUIDATION_VALUE_T0 = "liquidation_value_t0"
    LIQUIDATION_VALUE_T1 = "liquidation_value_t1"
    APPRECIATION_PER_SECOND = "appreciation_per_second"
    FEES = "fees"
    OWED = "owed"
    HELD = "held"
    UNREALISED = "unrealised"
    ALL_TIME_EARNINGS = "all_time_earnings"
    MARKET_VALUE = "market_value"
    MARK_PRICE = "mark_price"
    YIELD_TO_MATURITY = "yield_to_maturity"


OF_ONE_BILL = (PortfolioField.MARKET_VALUE, PortfolioField.MARK_PRICE, PortfolioField.YIELD_TO_MATURITY)


class PocketRows(NamedTuple):
    """The rows of a Pocket used in explanations, read at one moment."""

    accounts: list[store.AccountRow]
    holds: list[store.HeldAmount]
    cash: store.CashRow
    trades: list[store.MovedTrade]
    transactions: list[store.MovedMoney]


async def read_pocket(conn: Connection, row: PocketRow) -> PocketRows:
    """Read the rows of a Pocket, in the caller's snapshot of the database."""
    key = row.customer_id, row.pocket_id
    cash = await store.get_cash(conn, *key)
    since = store.PocketSpan(*key, cash.entry_no, JOURNAL_NO_MAX, start=row.opened_at, end=store.NEVER)
    return PocketRows(
        accounts=await store.list_accounts(conn, *key),
        holds=await store.list_holds(conn, *key),
        cash=cash,
        trades=await store.list_trades(conn, since, _MOVES_CASH),
        transactions=await store.list_transactions(conn, since),
    )


class ExplainedPocket:
    """The explanations of one Pocket at an instant."""

    def __init__(self, bank: Bank, row: PocketRow, rows: PocketRows, *, now: datetime, real_time: bool = False) -> None:
        self._bank, self._row, self._rows, self._now = bank, row, rows, now
        self._real_time = real_time
        self.valuation: Valuation = valuation(row, bank, now, real_time=real_time)

    def explain(self, field: PortfolioField, cusip: str | None = None) -> Explanation:
        """Return the explanation of a field. Raises InvalidInput for a field that is not shown, NotFound for a bill."""
        if (field in OF_ONE_BILL) != (cusip is not None):
            if cusip is None:
                raise InvalidInput.at("query", "cusip", msg=f"is needed for {field}", kind="missing")
            raise InvalidInput.at("query", "cusip", msg=f"is only taken with {', '.join(OF_ONE_BILL)}")
        if cusip is not None:
            return self._of_bill(field, cusip)
        explained: dict[PortfolioField, Callable[[], Explanation]] = {
            PortfolioField.TOTAL_VALUE: self._total_value,
            PortfolioField.BILLS_VALUE: self._bills_value,
            PortfolioField.CASH: self._cash,
            PortfolioField.LIQUIDATION_VALUE_T0: self._liquidation_t0,
            PortfolioField.LIQUIDATION_VALUE_T1: self._liquidation_t1,
            PortfolioField.APPRECIATION_PER_SECOND: self._appreciation,
            PortfolioField.OWED: self._owed,
            PortfolioField.HELD: self._held,
            PortfolioField.UNREALISED: self._unrealised,
            PortfolioField.ALL_TIME_EARNINGS: self._all_time_earnings,
        }
        return explained[field]()

    # -- bills -----------------------------------------------------------------------

    @property
    def _market(self) -> Market:
        return self._bank.market

    @cached_property
    def _values(self) -> list[Explanation]:
        return [self._market_value(each) for each in self.valuation.positions]

    def _lots(self, cusip: str) -> list[store.AccountRow]:
        return [each for each in self._rows.accounts if each.asset == cusip]

    def _price(self, held: PositionValue) -> Explanation:
        tick = self.valuation.pricing_timestamp
        return prices.mark(self._market, held.bill, tick, matured=held.bill.maturity <= et_date(self._now))

    def _market_value(self, held: PositionValue) -> Explanation:
        label = f"Market value of {held.cusip}"
        return explain(
            label,
            "Bills times their price, which is per $100 of face value: one bill is $100.",
            Formula("x", "100 * u * P", Unit.CENTS, "Not yet rounded"),
            Formula("V", "round(x)", Unit.CENTS, label, TO_CENT),
            comes_to=held.market_value,
            inputs=[given("u", "Bills held", held.units, Unit.UNITS)],
            parts=[self._price(held)],
            rows=[lot_row(each) for each in self._lots(held.cusip)],
        )

    def _of_bill(self, field: PortfolioField, cusip: str) -> Explanation:
        for held in self.valuation.positions:
            if held.cusip == cusip:
                if field == PortfolioField.MARKET_VALUE:
                    return self._market_value(held)
                if field == PortfolioField.MARK_PRICE:
                    return self._price(held)
                return prices.yield_to_maturity(self._market, held.bill, self._now)
        raise NotFound("The Pocket holds no such bill.")

    def _bills_value(self) -> Explanation:
        return explain(
            "Value of the bills",
            "The market value of every bill.",
            Formula("B", "sum(V)", Unit.CENTS, "Value of the bills"),
            comes_to=sum(each.market_value for each in self.valuation.positions),
            parts=self._values,
        )

    def _total_value(self, symbol: str = "T") -> Explanation:
        return explain(
            "Total value",
            "Cash, and the market value of every bill. Fees that are not yet charged are shown apart.",
            Formula(symbol, "C + sum(V)", Unit.CENTS, "Total value"),
            comes_to=self.valuation.total_value,
            parts=[self._cash(), *self._values],
        )

    def _unrealised(self) -> Explanation:
        lots = [each for each in self._rows.accounts if each.kind == "lot"]
        return explain(
            "Unrealised gain",
            "What the bills are worth, less what they were acquired for. Selling them makes it a realised gain.",
            Formula("U", "sum(V) - sum(b)", Unit.CENTS, "Unrealised gain"),
            comes_to=sum(each.market_value for each in self.valuation.positions) - self._row.earnings_basis,
            inputs=[
                given(
                    "b", f"Acquired for, lot {each.account_no}", each.earnings_basis, Unit.CENTS, rows=[lot_row(each)]
                )
                for each in lots
            ],
            parts=self._values,
        )

    def _appreciation(self) -> Explanation:
        if not self._row.real_time_yield:
            raise InvalidInput.at("query", "field", msg="is not shown: real-time yield of the Pocket is off")
        slope = portfolio_of(
            self._row, self._bank, self._now, omit=frozenset(), real_time=self._real_time
        ).appreciation_per_second
        assert slope is not None
        return explain(
            "Appreciation per second",
            "What is missing of each bill to par, spread evenly over the seconds until it matures.",
            Formula(
                "A",
                f"round(sum(s), {_APPRECIATION_DECIMALS})",
                Unit.CENTS_PER_SECOND,
                "Appreciation per second",
                "half up to twelve decimals",
            ),
            comes_to=slope,
            parts=[self._slope(each) for each in self._values_with_bills()],
        )

    def _values_with_bills(self) -> list[tuple[PositionValue, Explanation]]:
        return list(zip(self.valuation.positions, self._values, strict=True))

    def _slope(self, held_and_value: tuple[PositionValue, Explanation]) -> Explanation:
        held, value = held_and_value
        label = f"Appreciation of {held.cusip}"
        tick, matures = self.valuation.pricing_timestamp, self._market.matures_at(held.bill)
        if held.bill.maturity <= et_date(self._now):
            matured = given("M", "Maturity", held.bill.maturity, Unit.DATE)
            step = Formula("s", "0", Unit.CENTS_PER_SECOND, label)
            return explain(label, "The bill has matured: it grows no more.", step, comes_to=0, inputs=[matured])
        seconds = self._market.tick_prices(self._now, real_time=self._real_time)[held.cusip].seconds_left
        slope = Decimal((10_000 * held.units - held.market_value) * 10**18 // seconds).scaleb(-18)
        return explain(
            label,
            "Face value less market value, by the whole seconds until maturity.",
            Formula("t", "floor(M - T)", Unit.SECONDS, "Seconds until maturity"),
            Formula("s", "floor((10000 * u - V) / t, 18)", Unit.CENTS_PER_SECOND, label, "down to eighteen decimals"),
            comes_to=format(slope, "f"),
            inputs=[
                given("u", "Bills held", held.units, Unit.UNITS),
                given("T", "Instant of the prices", tick, Unit.INSTANT),
                given("M", "Maturity, 00:00 Eastern", matures, Unit.INSTANT),
            ],
            parts=[value],
        )

    # -- liquidation -----------------------------------------------------------

    def _liquidation_t0(self) -> Explanation:
        now = self._now
        bps = self._bank.terms.haircut_bps + self._bank.stale_bps(now)
        parts = []
        for cusip, units, settled in positions_of(self._row, self._bank, now):
            struck = self._market.tick_prices(now, real_time=self._real_time)[cusip]
            bill, tick = struck.bill, self.valuation.pricing_timestamp
            day = self._market.calendars.pricing_day(tick)
            matured = bill.maturity <= et_date(now)
            bid = prices.par(bill, tick, "B") if matured else prices.bid(self._market, bill, day, day)
            label = f"Proceeds of {cusip} today"
            parts.append(
                explain(
                    label,
                    "Settled bills times the bid for settlement today, less the spread of the bank.",
                    Formula(
                        "H",
                        "B - round(B * h / 10000, 6)",
                        Unit.USD_PER_100,
                        "Bid less the spread",
                        "half up to six decimals",
                    ),
                    Formula("W", "round(100 * u * H)", Unit.CENTS, label, TO_CENT),
                    comes_to=cents_for(settled, subtract_spread(struck.t0_bid_micros, bps)),
                    inputs=[
                        given("u", f"Bills of {units} that have settled and not matured", settled, Unit.UNITS),
                        given("h", "Spread of the bank", bps, Unit.BASIS_POINTS),
                    ],
                    parts=[bid],
                    rows=[lot_row(each) for each in self._lots(cusip)],
                )
            )
        label = "Available today"
        words = (
            "Cash and what the settled bills fetch for settlement today, less fees not yet charged and cash on hold."
        )
        discount = self._row.discount_on(self._market.calendars.pricing_day(now))
        early = given("D", "Fee for using cash before it settles", discount, Unit.CENTS)
        return self._liquidation(label, words, self.valuation.liquidation_value_t0, parts, early)

    def _liquidation_t1(self) -> Explanation:
        tick, calendars = self.valuation.pricing_timestamp, self._market.calendars
        settles_on = self._market.settles_on(self._now)
        struck = self._market.tick_prices(self._now, real_time=self._real_time)
        stale_bps = self._bank.stale_bps(self._now)
        less = f"(B - round(B * {stale_bps} / 10000, 6))" if stale_bps else "B"
        parts = []
        for held in self.valuation.positions:
            label, price = f"Proceeds of {held.cusip} tomorrow", struck[held.cusip].t1_bid_micros
            bid = prices.bid(self._market, held.bill, calendars.pricing_day(tick), settles_on, comes_to=price)
            parts.append(
                explain(
                    label,
                    f"Bills times the bid for settlement on {settles_on}.",
                    Formula("W", f"round(100 * u * {less})", Unit.CENTS, label, TO_CENT),
                    comes_to=cents_for(held.units, subtract_spread(price, stale_bps)),
                    inputs=[given("u", "Bills held", held.units, Unit.UNITS)],
                    parts=[bid],
                    rows=[lot_row(each) for each in self._lots(held.cusip)],
                )
            )
        label = "Available tomorrow"
        words = f"Cash and what all bills fetch for settlement on {settles_on}, less fees not yet charged and holds."
        return self._liquidation(label, words, self.valuation.liquidation_value_t1, parts)

    def _liquidation(self, label: str, words: str, value: int, parts: list[Explanation], *less: Input) -> Explanation:
        accrued = accrued_cents(self._row, self._bank, self._now)
        return explain(
            label,
            words,
            Formula("L", f"max(0, C + sum(W) - F - R{' - D' if less else ''})", Unit.CENTS, label),
            comes_to=value,
            inputs=[
                given("F", "Fee accrued and not yet charged", accrued, Unit.CENTS),
                given("R", "Cash on hold for payments by card", self._row.reserved, Unit.CENTS),
                *less,
            ],
            parts=[self._cash(), *parts],
        )

    # -- cash --------------------------------------------------------------------------

    def _cash(self) -> Explanation:
        cash, trades, transactions = self._rows.cash, self._rows.trades, self._rows.transactions
        since = "since the Pocket was opened" if cash.business_date is None else f"after {cash.business_date}"
        return explain(
            "Cash",
            "Cash at the end of the last business day that is closed, and what has moved it since.",
            Formula("C", "c + i - o + s - b", Unit.CENTS, "Cash"),
            comes_to=self._row.cash,
            inputs=[
                given(
                    "c",
                    f"Cash at the end of {cash.business_date or 'no day yet'}",
                    cash.cash,
                    Unit.CENTS,
                    rows=_snapshot_rows(cash),
                ),
                given("i", f"Received {since}", cash.received, Unit.CENTS),
                given("o", f"Paid {since}, fees included", cash.paid, Unit.CENTS),
                given("s", f"Bills sold or matured {since}", cash.sold, Unit.CENTS),
                given("b", f"Bills bought {since}", cash.bought, Unit.CENTS),
            ],
            rows=[*store.transaction_rows(transactions), *store.trade_rows(trades)],
            more_rows=max(len(trades), len(transactions)) > store.ROWS_MAX,
        )

    def _owed(self) -> Explanation:
        owed = [each for each in self._rows.accounts if each.kind == "owed"]
        return explain(
            "Owed to the bank",
            "What the bank has paid for the Pocket, less what it has recovered from money that arrived.",
            Formula("O", "sum(d) - sum(k)", Unit.CENTS, "Owed to the bank"),
            comes_to=self._row.owed,
            inputs=[
                each
                for account in owed
                for each in (
                    given("d", "Paid for the Pocket", account.debits, Unit.CENTS, rows=[_account_row(account)]),
                    given("k", "Recovered", account.credits, Unit.CENTS, rows=[_account_row(account)]),
                )
            ],
        )

    def _held(self) -> Explanation:
        calendars = self._bank.calendars
        return explain(
            "Held",
            "What holds keep in the Pocket until they end. It earns like the rest, and cannot be paid out otherwise.",
            Formula("H", "sum(h)", Unit.CENTS, "Held"),
            comes_to=self._row.held_cents(self._now, calendars),
            inputs=[
                given("h", each.reason, each.amount, Unit.CENTS, rows=[hold_row(each)])
                for each in self._rows.holds
                if calendars.settles_at(each.until) > self._now
            ],
        )

    def _all_time_earnings(self) -> Explanation:
        shown = portfolio_of(self._row, self._bank, self._now, omit=frozenset(), real_time=self._real_time)
        if shown.all_time_earnings is UNSET:
            raise InvalidInput.at("query", "field", msg="is not shown any more: use the earnings of the Pocket")
        return explain(
            "All-time earnings",
            "What the Pocket is worth and has paid out, less what was paid in; before fees.",
            Formula("E", "T - i + o + f", Unit.CENTS, "All-time earnings"),
            comes_to=shown.all_time_earnings.value,
            inputs=[
                given("i", "Paid in since the Pocket was opened", self._row.inflow, Unit.CENTS),
                given("o", "Paid out since the Pocket was opened", self._row.outflow, Unit.CENTS),
                given("f", "Fees charged since the Pocket was opened", self._row.fees, Unit.CENTS),
            ],
            parts=[self._total_value()],
        )


def _snapshot_rows(cash: store.CashRow) -> list[Row]:
    if cash.business_date is None:
        return []
    label = f"State of the Pocket at the end of {cash.business_date}"
    return [
        Row(kind=RowKind.SNAPSHOT, label=label, entry_no=cash.entry_no, amount=usd(cash.cash), on=cash.business_date)
    ]


def _account_row(account: store.AccountRow) -> Row:
    label = f"Account {account.account_no} of the ledger"
    return Row(kind=RowKind.ACCOUNT, label=label, id=str(account.account_no))
