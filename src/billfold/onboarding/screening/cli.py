"""`billfold screening`: sanctions lists, and what their names were found in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from billfold.cli.command import CommandGroup, Row
from billfold.cli.context import CliError
from billfold.cli.output import console
from billfold.onboarding.screening import store
from billfold.onboarding.screening.imports import read_list, replace_current
from billfold.onboarding.screening.sdn_xml import Progress as ReadProgress
from billfold.onboarding.screening.types import InvalidList
from billfold.platform.clock import wall_now

if TYPE_CHECKING:
    from billfold.platform.database.pool import Connection

LISTS_SHOWN = 20
group = CommandGroup("screening", "Import a sanctions list.", example="import SDN.XML")


@group.command("import SDN.XML", "import sdn.csv --published 2025-06-02")
async def import_list(
    conn: Connection,
    file: Annotated[Path, typer.Argument(help="SDN.XML, or sdn.csv with alt.csv and add.csv beside it.")],
    *,
    published: Annotated[
        datetime | None, typer.Option(formats=["%Y-%m-%d"], help="When the CSV files were published.")
    ] = None,
) -> str:
    """Import a list as OFAC publishes it. The former one is in force until the new one is whole."""
    try:
        with _bar("Reading") as show:
            read = read_list(file, _day(published), show)
        with _bar("Writing", len(read.entries)) as show:
            row = await replace_current(conn, read, now=wall_now(), progress=show)
    except InvalidList as wrong:
        raise CliError(f"{file}: {wrong}.", "The current list stays in force. Download the list anew.") from None
    if row is None:
        return "The list is the one that is in force already: nothing was changed."
    return f"{row.entry_count:,} entries with {row.name_count:,} names of {row.published_on} are in force."


@group.table("status", columns=("published", "imported", "entries", "names", "in force"), empty="No list was imported.")
async def status(conn: Connection) -> Iterable[Row]:
    """Show the lists that were imported, the last one first."""
    return [
        (
            row.published_on,
            row.imported_at,
            f"{row.entry_count:,}",
            f"{row.name_count:,}",
            "yes" if row.is_current else "",
        )
        for row in await store.list_imported(conn, LISTS_SHOWN)
    ]


def _day(published: datetime | None) -> date | None:
    return published.date() if published else None


@contextmanager
def _bar(what: str, total: int | None = None) -> Iterator[ReadProgress]:
    columns = (TextColumn(what), BarColumn(), TextColumn("{task.completed:,} entries"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=total)
        yield lambda so_far: bar.update(task, completed=so_far)
