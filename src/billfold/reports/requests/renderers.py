"""The renderer of each type of report in each format, and the names of files.

Memory does not grow with the customer's data. The security price report has a row for each bill and each finished day
of the bond market: prices as recorded when the bank closed the day (same-day bid, next-day ask, and mark). Prices of
bills that no Pocket held are computed from the same published rates. Reports of trades and of positions are in separate
files.
"""

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import date, timedelta
from decimal import Decimal
from functools import partial
from typing import IO, Final

from billfold.bills.rules.strategies import STRATEGIES
from billfold.ledger.bank import Bank
from billfold.platform.errors import NotFound
from billfold.platform.text import lines_of
from billfold.reports.entries.reader import StatementRange, list_entries, read_statement
from billfold.reports.entries.types import AccountEntry, AccountStatement, AccountType
from billfold.reports.formats import bai2, mt940, ofx, xlsx
from billfold.reports.formats.camt import write_camt052, write_camt053, write_camt054
from billfold.reports.formats.files import StatementFile, Writer
from billfold.reports.proofs.signatures import Figure
from billfold.reports.requests import bookkeeping, types
from billfold.reports.requests.securities import write_positions_csv, write_positions_pdf, write_trades

COLUMNS: Final = (
    "price_date", "cusip", "isin", "maturity_date", "bid_price", "ask_price", "end_of_day_price", "discount_rate",
)  # fmt: skip
_ONE_DAY = timedelta(days=1)
_RECORDED = """
SELECT cusip, bid_micros, ask_micros, mark_micros FROM closing_price WHERE business_date = $1 AND cusip = ANY($2)
"""
Prices = tuple[int, int, int]


async def write_prices(source: types.ReportSource, output: IO[bytes]) -> None:
    """Write the prices of the named bills; by default those on the run and those that the customer has traded."""
    bank, parameters = source.bank, source.request.parameters
    output.write(lines_of([COLUMNS]))
    request = source.request
    traded = () if parameters.cusips else await types.cusips_traded(bank.pool, request.customer_id, request.entry_no)
    for day in _days(source):
        cusips = sorted(parameters.cusips or {*traded, *_on_the_run(bank, day)})
        rows = await bank.pool.fetch(_RECORDED, day, cusips)
        recorded = {row["cusip"]: (row["bid_micros"], row["ask_micros"], row["mark_micros"]) for row in rows}
        output.write(lines_of(_rows(bank, day, cusips, recorded)))


def _days(source: types.ReportSource) -> Iterator[date]:
    """Yield the days of the range that have prices and were over at the time of the request."""
    calendars, market = source.bank.calendars, source.bank.market
    first, last = source.request.parameters.date_from, source.request.parameters.date_to
    assert first is not None
    assert last is not None
    for number in range((last - first).days + 1):
        day = first + number * _ONE_DAY
        is_over = calendars.closes_at(day) <= source.request.seen_at
        if day >= market.first_day and calendars.is_bond_day(day) and is_over:
            yield day


def _on_the_run(bank: Bank, day: date) -> Iterator[str]:
    for strategy in STRATEGIES:
        with suppress(NotFound):
            yield bank.market.on_the_run(strategy.maturity_weeks, day).cusip


def _rows(bank: Bank, day: date, cusips: list[str], recorded: dict[str, Prices]) -> Iterator[tuple[object, ...]]:
    market, at = bank.market, bank.calendars.closes_at(day)
    for cusip in cusips:
        bill = market.bill(cusip)
        if not bill.first_issue <= day < bill.maturity:
            continue
        prices = recorded.get(cusip) or (market.t0_bid(bill, at), market.ask(bill, at), market.mark(bill, at))
        rate = Decimal(market.bid_rate(bill, day)).scaleb(-3)
        yield (day, cusip, bill.isin, bill.maturity, *map(types.per_hundred, prices), rate)


WRITERS: Final[Mapping[str, Writer]] = {
    "CAMT053": write_camt053,
    "CAMT052": write_camt052,
    "CAMT054": write_camt054,
    "BAI2": bai2.write_bai2,
    "OFX": ofx.write_ofx,
    "MT940": mt940.write_mt940,
    "XLSX": xlsx.write_xlsx,
}


async def read_file(bank: Bank, wanted: Iterable[StatementRange]) -> StatementFile:
    """Return a file of these accounts, all of one type and period, whose balances have been read and verified.

    Raises NotFound, InvariantError.
    """
    return StatementFile(tuple([await read_statement(bank, each) for each in wanted]), partial(list_entries, bank))


def in_format(writer: Writer) -> types.Renderer:
    """Return a renderer that writes a statement report in the format of a writer."""

    async def write(source: types.ReportSource, output: IO[bytes]) -> None:
        file = await _statements(source)
        if writer is not write_camt054:  # a notification has no balances
            source.figures.extend(_balances(file.statements))
        await writer(file, output)

    return write


def _balances(statements: Iterable[AccountStatement]) -> Iterator[Figure]:
    for each in statements:
        yield Figure(f"Opening balance of {each.account.name}", f"{types.dollars(each.opening.value)}")
        yield Figure(f"Closing balance of {each.account.name}", f"{types.dollars(each.closing.value)}")


async def _statements(source: types.ReportSource) -> StatementFile:
    """Return the statements of the day, up to the time of the request."""
    request = source.request
    day = request.parameters.date
    assert day is not None
    is_bank = request.type == types.ReportType.BANK_STATEMENT_REPORT
    type_ = AccountType.BANK if is_bank else AccountType.BROKERAGE
    wanted = StatementRange(
        request.customer_id,
        source.pocket_ids[0],
        type_,
        day,
        day,
        now=request.seen_at,
        position=source.position,
        entries_after=request.entries_after,
    )
    file = await read_file(source.bank, [wanted._replace(pocket_id=each) for each in source.pocket_ids])
    expected = max(1, sum(each.totals.credits + each.totals.debits for each in file.statements))
    written = 0

    async def entries(statement: AccountStatement) -> AsyncIterator[list[AccountEntry]]:
        nonlocal written
        async for page in file.entries(statement):
            yield page
            written += len(page)
            source.report_progress(100 * written // expected)

    return file._replace(entries=entries)


_BOOKS: Final = {
    "BEANCOUNT": bookkeeping.in_books(bookkeeping.write_beancount, bookkeeping.BEANCOUNT_HEADING),
    "LEDGER": bookkeeping.in_books(bookkeeping.write_ledger, b""),
    "QUICKBOOKS_CSV": bookkeeping.in_books(bookkeeping.write_quickbooks, bookkeeping.QUICKBOOKS_HEADING),
    "XERO_CSV": bookkeeping.in_books(bookkeeping.write_xero, bookkeeping.XERO_HEADING),
}
_STATEMENTS: Final = (types.ReportType.BANK_STATEMENT_REPORT, types.ReportType.BROKERAGE_STATEMENT_REPORT)
RENDERERS: Final[Mapping[tuple[types.ReportType, types.ReportFormat], types.Renderer]] = {
    **{(kind, types.ReportFormat(name)): in_format(WRITERS[name]) for kind in _STATEMENTS for name in WRITERS},
    (types.ReportType.TRADE_REPORT, types.ReportFormat.TMS_CSV): write_trades,
    (types.ReportType.TRADE_REPORT, types.ReportFormat.CSV): write_trades,
    **{(types.ReportType.TRADE_REPORT, types.ReportFormat(name)): each for name, each in _BOOKS.items()},
    (types.ReportType.SECURITY_PRICE_REPORT, types.ReportFormat.TMS_CSV): write_prices,
    (types.ReportType.POSITION_SUMMARY_REPORT, types.ReportFormat.PDF): write_positions_pdf,
    (types.ReportType.POSITION_SUMMARY_REPORT, types.ReportFormat.CSV): write_positions_csv,
}


def formats_of(type_: types.ReportType, parameters: types.ReportParameters) -> list[types.ReportFormat]:
    """Return the formats of a report; one that continues another has no balances to show."""
    if parameters.after_report_id is not None:
        return [types.ReportFormat.CAMT054]
    return [output_format for kind, output_format in RENDERERS if kind == type_]


def file_name_of(request: types.ReportRequest, output_format: types.ReportFormat) -> str:
    """Return the name of a report's file: its type and days."""
    parameters = request.parameters
    days = [
        each.isoformat() for each in (parameters.date, parameters.date_from, parameters.date_to) if each is not None
    ]
    return "-".join((request.type.lower().replace("_", "-"), *days)) + f".{types.FORMATS[output_format].extension}"
