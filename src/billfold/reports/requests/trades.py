"""The trade report: purchases and sales, one row each, oldest first.

Security master data, the trading entity, and the trade itself; commas, ISO dates and dots in decimals, whoever reads
it. Rates are in percent, amounts in dollars, `quantity_par` is face value.
"""

from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import IO, Final

from billfold.accounts.trades.schemas import is_settled, priced_from, settles_on
from billfold.accounts.trades.store import TRADES, TradeFilters, TradeRow, count_trades
from billfold.bills.rules import pricing
from billfold.bills.types import Bill
from billfold.ledger.bank import Bank
from billfold.platform.text import lines_of
from billfold.reports.requests.types import DateType, Entity, ReportSource, dollars, entity_of, per_hundred

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
    entity = await entity_of(bank, request.customer_id)
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
    bank, shown_at = source.bank, source.request.created_at
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
    """Return discount rate and investment rate of a price in percent; nothing on the day of maturity."""
    since = priced_from(row, bank.calendars)
    days = (bill.maturity - since).days
    if days <= 0:
        return Decimal(0).quantize(_PERCENT), Decimal(0).quantize(_PERCENT)
    discount = Decimal(pricing.rate_from_price(row.price_micros, days)).scaleb(-3)
    return discount.quantize(_PERCENT), pricing.investment_rate(row.price_micros, since, bill.maturity)


def _amounts(row: TradeRow) -> tuple[Decimal, ...]:
    """Return gross amount, fees, net amount, cost and realised gain: nothing is charged for a trade."""
    amount, cost = dollars(row.notional), dollars(row.tax_basis)
    gain = _NO_DOLLARS if row.incoming else dollars(row.notional - row.tax_basis)
    return amount, _NO_DOLLARS, amount, cost, gain
