"""Reports of positions and trades.

The trade report has purchases and sales, one row each, oldest first: security master data, the trading entity, and the
trade itself. Commas, ISO dates and dots in decimals in every locale. Rates are in percent, amounts in dollars,
`quantity_par` is face value.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from decimal import Decimal
from typing import IO, Final, NamedTuple

from billfold.accounts.trades.schemas import is_settled, priced_from, settles_on
from billfold.accounts.trades.store import TRADES, TradeFilters, TradeRow, count_trades
from billfold.bills.rules import pricing, yields
from billfold.bills.types import Bill
from billfold.ledger.bank import Bank
from billfold.platform.money import format_usd
from billfold.platform.text import lines_of
from billfold.reports import printing
from billfold.reports.entries.reader import StatementRange, read_statement
from billfold.reports.entries.types import AccountType, Holding
from billfold.reports.proofs.signatures import NamedPocket
from billfold.reports.requests.types import DateType, Entity, ReportSource, dollars, entity_of, per_hundred
from billfold.reports.statements.store import costs as costs_of

SECURITY_COLUMNS: Final = (
    "cusip", "isin", "description", "security_type", "currency", "issue_date", "maturity_date", "day_count",
    "denomination",
)  # fmt: skip
ENTITY_COLUMNS: Final = ("customer_id", "customer_name", "pocket_id", "pocket_name", "broker_name", "custodian")
TRADE_COLUMNS: Final = (
    "trade_id", "activity", "book_date", "trade_time_utc", "settlement_date", "side", "quantity_par",
    "price_per_100", "discount_rate", "investment_rate", "gross_amount", "fees", "net_amount", "cost_amount",
    "realised_gain", "status",
)  # fmt: skip
_ROWS_PER_PAGE = 1000
_PAR_DOLLARS = 100
_PERCENT = Decimal("0.001")
_NO_DOLLARS = Decimal("0.00")


async def write_trades(source: ReportSource, output: IO[bytes]) -> None:
    """Write the trades of some Pockets between two days."""
    bank, request = source.bank, source.request
    entity = await entity_of(bank, request)
    values = (request.customer_id, list(source.pocket_ids), *_filters(source).values())
    output.write(lines_of([(*SECURITY_COLUMNS, *ENTITY_COLUMNS, *TRADE_COLUMNS)]))
    cells_of = _cells(source, entity)
    expected = max(1, await count_trades(bank.pool, *values))
    written, place = 0, None
    while rows := await TRADES.rows(bank.pool, *values, after=place, descending=False, limit=_ROWS_PER_PAGE):
        output.write(lines_of(cells_of(row) for row in rows if row.entry_no <= request.entry_no))
        written += len(rows)
        source.report_progress(100 * written // expected)
        place = rows[-1].entry_no, rows[-1].trade_no


def _filters(source: ReportSource) -> TradeFilters:
    parameters = source.request.parameters
    days = (parameters.date_from, parameters.date_to)
    by_settlement = parameters.date_type == DateType.SETTLEMENT_DATE
    booked_from, booked_to = (None, None) if by_settlement else days
    settled_from, settled_to = days if by_settlement else (None, None)
    filters = TradeFilters(
        activities=["BUY", "SELL"],
        booked_from=booked_from,
        booked_to=booked_to,
        settled_from=settled_from,
        settled_to=settled_to,
    )
    return filters.by_calendars(source.bank.calendars)


def _cells(source: ReportSource, entity: Entity) -> Callable[[TradeRow], Iterable[object]]:
    bank, shown_at = source.bank, source.request.seen_at
    securities: dict[str, tuple[object, ...]] = {}

    def cells(row: TradeRow) -> Iterable[object]:
        bill = bank.market.bill(row.cusip)
        if (security := securities.get(row.cusip)) is None:
            security = securities[row.cusip] = _security(bill)
        owner = (entity.customer_id, entity.name, row.pocket_id, entity.pockets[row.pocket_id])
        return (
            *security,
            *owner,
            bank.settings.bank_name,
            bank.settings.bank_name,
            row.trade_id,
            row.activity,
            row.book_date,
            row.traded_at,
            settles_on(row, bank.calendars),
            row.activity,
            Decimal(row.units * _PAR_DOLLARS),
            per_hundred(row.price_micros),
            *_rates(bank, row, bill),
            *_amounts(row),
            "SETTLED" if is_settled(row, shown_at, bank.calendars) else "BOOKED",
        )

    return cells


def _security(bill: Bill) -> tuple[object, ...]:
    master = (bill.cusip, bill.isin, bill.description, "TBILL", "USD")
    return (*master, bill.first_issue, bill.maturity, "ACT/360", _PAR_DOLLARS)


def _rates(bank: Bank, row: TradeRow, bill: Bill) -> tuple[Decimal, Decimal]:
    """Return discount rate and investment rate of a price in percent; empty on the day of maturity."""
    since = priced_from(row, bank.calendars)
    days = (bill.maturity - since).days
    if days <= 0:
        return Decimal(0).quantize(_PERCENT), Decimal(0).quantize(_PERCENT)
    discount = Decimal(pricing.rate_from_price(row.price_micros, days)).scaleb(-3)
    return discount.quantize(_PERCENT), yields.investment_rate(row.price_micros, since, bill.maturity)


def _amounts(row: TradeRow) -> tuple[Decimal, ...]:
    """Return gross amount, fees, net amount, cost and realised gain; a trade has no fees."""
    amount, cost = dollars(row.notional), dollars(row.tax_basis)
    gain = _NO_DOLLARS if row.incoming else dollars(row.notional - row.tax_basis)
    return amount, _NO_DOLLARS, amount, cost, gain


COLUMNS: Final = ("Pocket", "CUSIP", "Quantity", "Market Price", "Market Value", "Historical Cost Value")
_PRINTED: Final = printing.columns("Pocket+", "CUSIP", *(f"{name}>" for name in COLUMNS[2:]))
_NOTE = (
    "Quantity is in units of $100 of face value, the price is per $100. Market value is at the price of the day's"
    " close, or at the last price before this summary was requested. Historical cost is what the bills held had cost."
)


class Position(NamedTuple):
    """A bill in a Pocket; `cost` is in cents."""

    pocket: str
    holding: Holding
    cost: int


async def write_positions_csv(source: ReportSource, output: IO[bytes]) -> None:
    """Write positions as a table: `Quantity` in units of $100, the price per $100, values in dollars."""
    output.write(lines_of([COLUMNS]))
    async for each in positions_of(source):
        held = each.holding
        values = (per_hundred(held.price_micros), dollars(held.value), dollars(each.cost))
        output.write(lines_of([(each.pocket, held.security.cusip, held.units, *values)]))


async def write_positions_pdf(source: ReportSource, output: IO[bytes]) -> None:
    """Write the same table as a PDF, with totals."""
    output.write(await _print_positions(source, [each async for each in positions_of(source)]))


async def positions_of(source: ReportSource) -> AsyncIterator[Position]:
    """Yield the Pockets' holdings at the end of the day, or at the time of the request if that was earlier."""
    bank, request = source.bank, source.request
    day = request.parameters.date
    assert day is not None
    entity = await entity_of(bank, request)
    for number, pocket_id in enumerate(source.pocket_ids, 1):
        account = (request.customer_id, pocket_id, AccountType.BROKERAGE)
        wanted = StatementRange(*account, day, day, now=request.seen_at, position=source.position)
        statement = await read_statement(bank, wanted)
        holdings = statement.closing.holdings
        cusips = [each.security.cusip for each in holdings]
        costs = await costs_of(
            bank.pool, request.customer_id, pocket_id, through=source.position.entry_no, cusips=cusips
        )
        for each in holdings:
            yield Position(entity.distinct_name(pocket_id), each, costs[each.security.cusip])
        source.report_progress(100 * number // len(source.pocket_ids))


async def _print_positions(source: ReportSource, positions: Sequence[Position]) -> bytes:
    bank, request = source.bank, source.request
    day = request.parameters.date
    assert day is not None
    entity = await entity_of(bank, request)
    document = printing.PrintedDocument(
        title="Position summary",
        subtitle=printing.printed_day(day),
        reference=request.report_id.hex[:12].upper(),
        made_on=day,
        bank=printing.bank_of(bank.settings),
        recipient=await printing.recipient_of(bank, request.customer_id),
        details=[("Date", printing.printed_day(day)), ("Pockets", str(len(source.pocket_ids)))],
        tables=[_table(positions)],
        notes=[_NOTE],
    )
    if not source.pocket_ids:
        return await asyncio.to_thread(printing.print_document, document)
    first, *others = [NamedPocket(each, entity.pockets[each]) for each in source.pocket_ids]
    subject = printing.Subject(
        request.customer_id, first.id, first.name, request.shown_at, source.position, tuple(others)
    )
    return await printing.print_signed(bank, document, subject)


def _table(positions: Sequence[Position]) -> printing.PrintedTable:
    rows = [
        (
            printing.printed(each.pocket),
            each.holding.security.cusip,
            f"{each.holding.units:,}",
            f"{per_hundred(each.holding.price_micros):f}",
            format_usd(each.holding.value),
            format_usd(each.cost),
        )
        for each in positions
    ]
    sums = [sum(each.holding.value for each in positions), sum(each.cost for each in positions)]
    totals = ("Total", "", "", "", *map(format_usd, sums)) if positions else ()
    return printing.PrintedTable(
        heading="Positions", columns=_PRINTED, rows=rows, totals=totals, empty="No bills were held."
    )
