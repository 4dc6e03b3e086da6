"""`billfold verify`: the whole ledger recomputed from its log, and the first bad row named."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from billfold.cli.context import CliError, cli_context
from billfold.cli.output import console, key_value_table, print_error, print_success
from billfold.cli.resources import run_with_connection
from billfold.verify.report import Report
from billfold.verify.runner import verify_bank

if TYPE_CHECKING:
    from billfold.platform.crypto import Vault
    from billfold.platform.database.pool import Connection

MAX_SHOWN = 20


def verify(
    ctx: typer.Context,
    seals: Annotated[Path | None, typer.Option(help="A copy of the seals of the audit log, from elsewhere.")] = None,
) -> None:
    """Prove the ledger and the audit log: sums, balances, lots, chains. Changes nothing."""
    ground = cli_context(ctx)
    settings = ground.settings()
    vault = ground.vault(settings)
    seal_archive = ground.archive(settings)
    lines = asyncio.run(seal_archive.lines()) if seals is None else _seal_lines(seals)
    print_report(run_with_connection(ground, partial(verify_with_progress, vault=vault, seals=lines)))


def _seal_lines(seals: Path) -> list[str]:
    try:
        return seals.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError) as error:
        raise CliError(f"The seals cannot be read: {error}", "Name another file.") from error


async def verify_with_progress(conn: Connection, *, vault: Vault | None = None, seals: Sequence[str] = ()) -> Report:
    """Prove the bank, with a bar that says how far it is."""
    columns = (
        TextColumn("Proving"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.completed:,} of {task.total:,} commits"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=0)

        def progress(so_far: int, total: int) -> None:
            bar.update(task, completed=so_far, total=total)

        return await verify_bank(conn, progress=progress, vault=vault, seals=seals)


def print_report(report: Report) -> None:
    """Print what was checked. Raises CannotGoOn with the first bad row when there is one."""
    console.print(key_value_table((what, f"{count:,}") for what, count in report.checked.items()))
    if report.first is None:
        print_success("The ledger and the audit log prove themselves: every row is as it was written.")
        return
    for finding in report.findings[:MAX_SHOWN]:
        print_error(str(finding))
    raise CliError(
        f"The first bad row is in {report.first.table}: {report.first}",
        "Stop writing to this database, keep a copy of it, and compare with the last backup.",
    )
