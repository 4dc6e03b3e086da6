"""Explanations: how an amount of a Pocket, its earnings, its fee, or a price came about."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from decimal import Decimal
from typing import Annotated, Literal
from uuid import UUID

from msgspec import UNSET

from billfold.accounts.explain import store
from billfold.accounts.explain.earnings import EarningsField, ExplainedEarnings, explain_fees, read_days, read_movements
from billfold.accounts.explain.portfolio import OF_ONE_BILL, ExplainedPocket, PortfolioField, read_pocket
from billfold.accounts.explain.prices import PriceField, explain_price
from billfold.accounts.explain.schemas import Explained, Explanation, Formula, Row, RowKind, Unit, explain, given
from billfold.accounts.pockets import store as pocket_store
from billfold.accounts.pockets.commands import PocketRow
from billfold.accounts.pockets.earnings_routes import READS as EARNINGS
from billfold.accounts.pockets.earnings_routes import EarningsQuery, read_ends
from billfold.accounts.pockets.routes import READS as POCKETS
from billfold.accounts.pockets.schemas import Portfolio, portfolio_of
from billfold.bills.rules.earnings import require_prices
from billfold.http.caller import Call
from billfold.http.operations import SIGNED, MaybeInPath, get
from billfold.http.parameters import Query, parse_timestamp
from billfold.ledger.bank import Bank
from billfold.platform.database.connection import Connection
from billfold.platform.errors import InvalidInput, NotFound

_LABELS = {
    PortfolioField.LIQUIDATION_VALUE_T0: "Available today",
    PortfolioField.LIQUIDATION_VALUE_T1: "Available tomorrow",
}
"""Labels of a Pocket's figures that differ from their names."""


def explain_total(bank: Bank, rows: Sequence[PocketRow], field: PortfolioField, now: datetime) -> Explanation:
    """Explain the sum of a figure over these Pockets, each as it is shown; one that is not shown counts as zero."""
    is_slope = field == PortfolioField.APPRECIATION_PER_SECOND
    unit = Unit.CENTS_PER_SECOND if is_slope else Unit.CENTS
    inputs = []
    for row in rows:
        shown = portfolio_of(row, bank, now, omit=frozenset(), real_time=False)
        pocket = Row(kind=RowKind.POCKET, label=row.name, id=str(row.pocket_id))
        inputs.append(given("v", row.name, _figure(row, shown, field), unit, rows=[pocket]))
    label = f"{_LABELS.get(field) or field.replace('_', ' ').capitalize()} of all Pockets"
    return explain(
        label,
        "The sum over all Pockets that are not closed. Each has an explanation of its own.",
        Formula("S", "sum(v)", unit, label),
        comes_to=str(sum(Decimal(each.value) for each in inputs)),
        inputs=inputs,
    )


def _figure(row: PocketRow, shown: Portfolio, field: PortfolioField) -> int | str:
    bills = sum(each.market_value.value for each in shown.securities)
    figures: dict[PortfolioField, int | str] = {
        PortfolioField.TOTAL_VALUE: shown.total_value.value,
        PortfolioField.BILLS_VALUE: bills,
        PortfolioField.CASH: shown.cash.value,
        PortfolioField.LIQUIDATION_VALUE_T0: shown.liquidation_value_t0.value,
        PortfolioField.LIQUIDATION_VALUE_T1: shown.liquidation_value_t1.value,
        PortfolioField.APPRECIATION_PER_SECOND: shown.appreciation_per_second or "0",
        PortfolioField.FEES: sum(each.amount.value for each in shown.fees),
        PortfolioField.OWED: shown.owed.value,
        PortfolioField.HELD: shown.held.value,
        PortfolioField.UNREALISED: bills - row.earnings_basis,
        PortfolioField.ALL_TIME_EARNINGS: 0 if shown.all_time_earnings is UNSET else shown.all_time_earnings.value,
    }
    return figures[field]


At = Annotated[
    datetime | None,
    Query(
        parse=parse_timestamp, schema={"type": "string"}, description="A date-time with its offset; now if left out."
    ),
]
Field = Annotated[PortfolioField, Query(description="The last three are those of one bill: they need `cusip`.")]


@get("/api/v2/pockets/{pocket_id}/explain/", SIGNED, POCKETS)
async def explain_pocket(
    *,
    caller: Call,
    bank: Bank,
    pocket_id: UUID,
    field: Field = PortfolioField.TOTAL_VALUE,
    cusip: str | None = None,
    valuation_type: Literal["MARK", "REAL_TIME"] | None = None,
) -> Explained:
    """Explain amount of a Pocket.

    Returns its formula, inputs, steps, and the lots, prices, trades and transactions behind it. REAL_TIME values it at
    the second, MARK (the default) at the last minute of the market.
    """
    key = await caller.pocket(bank, pocket_id)
    async with _snapshot(bank) as conn:
        row = await pocket_store.get_pocket(conn, *key)
        rows = await read_pocket(conn, row)
        days = await read_days(conn, bank, row, caller.now) if field == PortfolioField.FEES else None
    pocket = ExplainedPocket(bank, row, rows, now=caller.now, real_time=valuation_type == "REAL_TIME")
    return Explained(
        field=field,
        as_of=caller.now,
        pricing_timestamp=pocket.valuation.pricing_timestamp,
        explanation=explain_fees(bank, row, days, caller.now) if days else pocket.explain(field, cusip),
    )


@get("/api/v2/customers/{customer_id}/pockets/explain/", tag="explain", as_of=True)
@get("/api/v2/pockets/explain/", POCKETS, tag="explain", as_of=True)
async def explain_total_of_pockets(
    *, caller: Call, bank: Bank, customer_id: MaybeInPath, field: PortfolioField = PortfolioField.TOTAL_VALUE
) -> Explained:
    """Explain total of Pockets.

    Returns a field summed over all Pockets of the customer that are not closed; the fields of one bill have no sum.
    """
    owner = await caller.owner(bank, customer_id)
    if field in OF_ONE_BILL:
        raise InvalidInput.at("query", "field", msg="has no sum: it is that of one bill")
    rows = await pocket_store.list_not_closed(bank.pool, owner, caller.as_of)
    return Explained(field=field, as_of=caller.now, explanation=explain_total(bank, rows, field, now=caller.now))


@get("/api/v2/pockets/{pocket_id}/earnings/explain/", SIGNED, EARNINGS, as_of=True)
async def explain_earnings(
    *, caller: Call, bank: Bank, pocket_id: UUID, query: EarningsQuery, field: EarningsField = EarningsField.EARNINGS
) -> Explained:
    """Explain earnings of a Pocket.

    Returns a figure of the earnings over a period: the Pocket at both ends, and the movements in between.
    """
    key = await caller.pocket(bank, pocket_id)
    async with _snapshot(bank) as conn:
        row = await pocket_store.get_pocket(conn, *key, caller.as_of)
        (ends,) = await read_ends(conn, bank, [row], query, now=caller.now)
        moved = await read_movements(conn, await store.stretch_of(conn, row, ends.period, bank.calendars))
    explanation = ExplainedEarnings(bank, ends, moved).explain(field)
    priced_at = bank.market.tick_at(ends.period.end) if ends.period.live else None
    return Explained(field=field, as_of=caller.now, pricing_timestamp=priced_at, explanation=explanation)


@get("/api/v2/pockets/{pocket_id}/fees/explain/", SIGNED, POCKETS, as_of=True)
async def explain_pocket_fees(caller: Call, bank: Bank, pocket_id: UUID) -> Explained:
    """Explain fee of a Pocket.

    Returns the fee accrued and not yet charged: base, rate and fee of each day since the last regular charge.
    """
    key = await caller.pocket(bank, pocket_id)
    async with _snapshot(bank) as conn:
        row = await pocket_store.get_pocket(conn, *key, caller.as_of)
        days = await read_days(conn, bank, row, caller.now)
    explanation = explain_fees(bank, row, days, caller.now)
    return Explained(field=PortfolioField.FEES, as_of=caller.now, explanation=explanation)


@get("/api/v2/securities/{cusip}/explain/", SIGNED, POCKETS)
async def explain_security_price(
    *, caller: Call, bank: Bank, cusip: str, field: PriceField = PriceField.MARK_PRICE, at: At = None
) -> Explained:
    """Explain price of a bill.

    Returns how a mark, a bid, an ask or a yield follows from the rates the Treasury published, now or at an earlier
    instant.
    `bid_t1` and `ask` are the prices of trades; `bid_t0` is before the spread of the bank.
    """
    at = at or caller.now
    if at > caller.now:
        raise InvalidInput.at("query", "at", msg="must not be later than now")
    require_prices(bank.market, at=at)
    bill = bank.market.bill(cusip)
    if bill.simulated and bank.settings.is_production:
        raise NotFound("There is no bill under this CUSIP.")
    explanation = explain_price(bank.market, bill, at, field)
    return Explained(field=field, as_of=at, pricing_timestamp=bank.market.tick_at(at), explanation=explanation)


@asynccontextmanager
async def _snapshot(bank: Bank) -> AsyncIterator[Connection]:
    """Open a transaction with one snapshot: an explanation reads a Pocket and its rows with several statements."""
    async with bank.pool.acquire() as conn, conn.transaction(isolation="repeatable_read", readonly=True):
        yield conn
