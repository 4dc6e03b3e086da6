"""The position summary: what each Pocket held at the end of a day, bill by bill, and what it had cost."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import IO, Final, NamedTuple

from billfold.platform.money import format_usd
from billfold.platform.text import lines_of
from billfold.reports import printing
from billfold.reports.entries.reader import Wanted, read_statement
from billfold.reports.entries.types import AccountType, Holding
from billfold.reports.proofs.signatures import NamedPocket
from billfold.reports.requests.types import ReportSource, dollars, entity_of, per_hundred
from billfold.reports.statements.store import costs as costs_of

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
    """Write the same table as a PDF, with its sums."""
    output.write(await _print(source, [each async for each in positions_of(source)]))


async def positions_of(source: ReportSource) -> AsyncIterator[Position]:
    """Yield what the Pockets held at the end of the day, or when the report was requested if that came before."""
    bank, request = source.bank, source.request
    day = request.parameters.date
    assert day is not None
    entity = await entity_of(bank, request.customer_id)
    for number, pocket_id in enumerate(source.pocket_ids, 1):
        account = (request.customer_id, pocket_id, AccountType.BROKERAGE)
        wanted = Wanted(*account, day, day, now=request.created_at, position=source.position)
        statement = await read_statement(bank, wanted)
        holdings = statement.closing.holdings
        cusips = [each.security.cusip for each in holdings]
        costs = await costs_of(
            bank.pool, request.customer_id, pocket_id, through=source.position.entry_no, cusips=cusips
        )
        for each in holdings:
            yield Position(entity.distinct_name(pocket_id), each, costs[each.security.cusip])
        source.report_progress(100 * number // len(source.pocket_ids))


async def _print(source: ReportSource, positions: Sequence[Position]) -> bytes:
    bank, request = source.bank, source.request
    day = request.parameters.date
    assert day is not None
    entity = await entity_of(bank, request.customer_id)
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
