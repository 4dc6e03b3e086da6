"""`billfold statements`: make the statements of a month now, correct those of a Pocket, list statements."""

from collections.abc import Iterable
from typing import Annotated
from uuid import UUID

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from billfold.cli.command import CommandGroup, Row, console
from billfold.cli.context import CliError
from billfold.ledger.bank import Bank
from billfold.platform.database.background_work import locked
from billfold.platform.errors import NotFound
from billfold.platform.money import format_usd
from billfold.reports.statements import store, worker
from billfold.reports.statements.store import Month
from billfold.reports.statements.worker import correct_statements

group = CommandGroup(
    "statements", "Make the monthly statements of Pockets, and correct them.", example="make --month 2026-01"
)

MonthKey = Annotated[str, typer.Option("--month", help="A month as YYYY-MM.")]


@group.command("make --month 2026-01")
async def make(bank: Bank, month: MonthKey) -> str:
    """Make the missing statements of a month. A worker does the same automatically; it can be interrupted."""
    wanted = _month(month)
    if wanted.due_at > await bank.now():
        raise CliError(f"{month} is not over yet.", f"Its statements are made from {wanted.next.first_day} on.")
    columns = (
        TextColumn(f"Statements of {month}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    progress = worker.Progress(0, 0)
    async with locked(bank.pool, worker.STATEMENTS_LOCK) as conn:
        if conn is None:
            raise CliError("Another process is making statements.", "Wait until it is done.")
        with Progress(*columns, console=console, transient=True) as bar:
            task = bar.add_task("", total=await store.count_due(bank.pool, wanted))
            async for progress in worker.make_month(bank, wanted):
                bar.update(task, completed=progress.made)
    if progress.failed:
        raise CliError(
            f"{progress.made} statements were made. Those of {progress.failed} customers failed.",
            "`billfold doctor` names them.",
        )
    return f"{progress.made} statements of {month} were made."


@group.table(
    "correct 5d0c2a4e-8f00-8000-8000-0000000000e1 --month 2026-01 --reason 'The price of January 30 was corrected.'",
    columns=("type", "month", "version>", "opening>", "closing>"),
    empty="Nothing was corrected.",
)
async def correct(
    bank: Bank,
    pocket: Annotated[UUID, typer.Argument(help="The Pocket whose statements are wrong.")],
    month: MonthKey,
    reason: Annotated[str, typer.Option(help="A sentence printed on the corrected statement.")],
) -> Iterable[Row]:
    """Make new versions of the statements of a month, and of later ones whose opening changes."""
    entry = await bank.directory.find("pocket", pocket)
    if entry is None or not reason.strip():
        raise CliError("There is no such Pocket." if entry is None else "A correction needs a reason.", "Correct it.")
    try:
        rows = await correct_statements(
            bank, entry.customer_id, entry.object_id, month=_month(month), reason=reason.strip()
        )
    except NotFound:
        raise CliError(
            f"The Pocket has no statements of {month}.", "Make them first: `billfold statements make`."
        ) from None
    return [
        (row.type, row.key, row.version, format_usd(row.opening or 0), format_usd(row.closing or 0)) for row in rows
    ]


def _month(key: str) -> Month:
    try:
        return Month.parse(key)
    except ValueError:
        raise CliError(f"{key} is not a month.", "Give it as YYYY-MM.") from None
