"""Statements of one day, of the bank or of the brokerage accounts of some Pockets, in any format of entries."""

from collections.abc import AsyncIterator, Iterable, Iterator
from typing import IO

from billfold.reports.entries.reader import Wanted
from billfold.reports.entries.types import AccountEntry, AccountStatement, AccountType
from billfold.reports.formats.camt import write_camt054
from billfold.reports.formats.table import read_file
from billfold.reports.formats.types import StatementFile, Writer
from billfold.reports.proofs.types import Figure
from billfold.reports.requests.renderers.amounts import dollars
from billfold.reports.requests.types import Renderer, ReportSource, ReportType


def in_format(writer: Writer) -> Renderer:
    """Return what writes a statement report in the format of a writer."""

    async def write(source: ReportSource, output: IO[bytes]) -> None:
        file = await _statements(source)
        if writer is not write_camt054:  # a notification has no balances
            source.figures.extend(_balances(file.statements))
        await writer(file, output)

    return write


def _balances(statements: Iterable[AccountStatement]) -> Iterator[Figure]:
    for each in statements:
        yield Figure(f"Opening balance of {each.account.name}", f"{dollars(each.opening.value)}")
        yield Figure(f"Closing balance of {each.account.name}", f"{dollars(each.closing.value)}")


async def _statements(source: ReportSource) -> StatementFile:
    """Return the statements of the day, or of what there was of it when the report was requested."""
    request = source.request
    day = request.parameters.date
    assert day is not None
    is_bank = request.type == ReportType.BANK_STATEMENT_REPORT
    type_ = AccountType.BANK if is_bank else AccountType.BROKERAGE
    wanted = Wanted(
        request.customer_id,
        source.pocket_ids[0],
        type_,
        day,
        day,
        now=request.created_at,
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
