"""`billfold screening`: sanctions lists, and the hits found in them."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Annotated
from uuid import UUID

import typer
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from billfold.cli.command import EXAMPLE_ID, CommandGroup, DayOption, Row, console
from billfold.cli.context import CliError
from billfold.data_keys.keys import DataShredded
from billfold.ledger.bank import Bank
from billfold.platform.clock import wall_now
from billfold.platform.database.connection import Connection
from billfold.screening import hits as screening_hits
from billfold.screening import store
from billfold.screening.hits import clear_hit, confirm_hit, describe_hit
from billfold.screening.ofac_sdn import Progress as ReadProgress
from billfold.screening.store import read_list, replace_current
from billfold.screening.types import HitRow, HitStatus, InvalidList

LISTS_SHOWN = 20
HITS_SHOWN = 200
group = CommandGroup(
    "screening", "Import a sanctions list, and decide whether its hits are true.", example="import SDN.XML"
)

HitId = Annotated[UUID, typer.Argument(help="Its id, from the list.")]
WhyNote = Annotated[str, typer.Option(help="Why. It is kept with the hit, and in the bank's audit log.")]


@group.command("import SDN.XML", "import sdn.csv --published 2025-06-02")
async def import_list(
    conn: Connection,
    file: Annotated[Path, typer.Argument(help="SDN.XML, or sdn.csv with alt.csv and add.csv in the same folder.")],
    *,
    published: Annotated[date | None, DayOption(help="When the CSV files were published.")] = None,
) -> str:
    """Import a list as OFAC publishes it; everybody is screened again. The old list applies until it is complete."""
    try:
        with _bar("Reading") as show:
            read = read_list(file, published, show)
        with _bar("Writing", len(read.entries)) as show:
            row = await replace_current(conn, read, now=wall_now(), progress=show)
    except InvalidList as wrong:
        raise CliError(f"{file}: {wrong}.", "The current list stays in force. Download the list again.") from None
    if row is None:
        return "This list is already in force: nothing was changed."
    counts = f"{row.entry_count:,} entries with {row.name_count:,} names"
    return f"{counts} of {row.published_on} are in force; the worker screens everybody."


@group.table(
    "status",
    columns=("published", "imported", "entries", "names", "to screen", "in force"),
    empty="No list was imported.",
)
async def status(conn: Connection) -> Iterable[Row]:
    """Show the imported lists, latest first, and how many subjects are still to be compared with the current one."""
    left = await store.count_left(conn)
    return [
        (
            row.published_on,
            row.imported_at,
            f"{row.entry_count:,}",
            f"{row.name_count:,}",
            f"{left:,}" if row.is_current else "",
            "yes" if row.is_current else "",
        )
        for row in await store.list_imported(conn, LISTS_SHOWN)
    ]


@group.table(
    "hits", "hits --status CLEARED", columns=("hit", "name", "score", "entry", "listed", "found"), empty="None."
)
async def hits(
    bank: Bank,
    *,
    status: Annotated[HitStatus, typer.Option(case_sensitive=False, help="Which to list.")] = HitStatus.OPEN,
) -> Iterable[Row]:
    """List hits, newest first."""
    rows = await screening_hits.list_hits(bank.pool, status, HITS_SHOWN)
    return [await _hit_line(bank, row) for row in rows]


@group.view(f"show {EXAMPLE_ID}")
async def show(bank: Bank, hit_id: HitId) -> None:
    """Show a hit: the screened name, the listed name it resembles, and why."""
    row = await screening_hits.get_hit(bank.pool, hit_id)
    for line in await describe_hit(bank, row):
        console.print(escape(line), soft_wrap=True)


@group.command(f"clear {EXAMPLE_ID} --note 'Born in another year, in another country.'")
async def clear(bank: Bank, hit_id: HitId, *, note: WhyNote) -> str:
    """Clear a hit as a false match. It takes two different operators (BILLFOLD_OPERATOR)."""
    row = await clear_hit(bank, hit_id, operator=_operator(bank), note=note, now=await bank.now())
    if row.status == HitStatus.CLEARED:
        return f"The hit is cleared by {' and '.join(row.cleared_by)}."
    return "Another operator has to clear it too."


@group.command(f"confirm {EXAMPLE_ID} --note 'The passport is the listed one.'")
async def confirm(bank: Bank, hit_id: HitId, *, note: WhyNote) -> str:
    """Confirm a true match: the application is rejected, the customer frozen, the counterparty unlinked."""
    await confirm_hit(bank, hit_id, operator=_operator(bank), note=note, now=await bank.now())
    return "The hit is confirmed; the worker rejects the application, freezes the customer or unlinks the counterparty."


async def _hit_line(bank: Bank, row: HitRow) -> Row:
    try:
        content = await screening_hits.open_content(bank.pool, bank, row)
    except DataShredded:
        return (row.hit_id, "(destroyed)", row.score, row.entry_uid, "(destroyed)", row.found_at)
    name, listed = escape(content.screened.name), escape(content.match.listed_name)
    return (row.hit_id, name, row.score, row.entry_uid, listed, row.found_at)


def _operator(bank: Bank) -> str:
    if not bank.settings.operator:
        raise CliError("No operator is named.", "Set BILLFOLD_OPERATOR.")
    return bank.settings.operator


@contextmanager
def _bar(what: str, total: int | None = None) -> Iterator[ReadProgress]:
    columns = (TextColumn(what), BarColumn(), TextColumn("{task.completed:,} entries"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=total)
        yield lambda so_far: bar.update(task, completed=so_far)
