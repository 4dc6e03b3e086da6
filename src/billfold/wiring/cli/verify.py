"""`billfold verify`: recomputes the whole ledger from its log, and reports the first bad row."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from billfold.cli import command
from billfold.cli.context import CliError, run_with_connection
from billfold.data_keys.keys import DataKeys
from billfold.platform.crypto import Vault
from billfold.platform.database.checks import Report
from billfold.platform.database.connection import Connection
from billfold.reports.proofs.cli import verify_files
from billfold.verify.runner import record_verification, verify_bank
from billfold.wiring.cli_context import Wiring

group = command.CommandGroup()
MAX_SHOWN = 20
_NOT_PROVEN = (
    "Not proven: what partners may do and their users, passwords and second factors, tokens, secrets, names and contact"
    " details, e-mails and notifications (docs/operate/audit_log.md)."
)


@group.command("verify", "verify statement.pdf --key document-keys.json")
def verify(
    context: Wiring,
    files: Annotated[list[Path] | None, typer.Argument(help="Documents of the bank; the ledger without any.")] = None,
    *,
    key: Annotated[Path | None, typer.Option(help="The public keys of the bank, to verify documents with.")] = None,
    seals: Annotated[Path | None, typer.Option(help="An archived copy of the audit log's seals.")] = None,
) -> None:
    """Verify the ledger and the audit log: sums, balances, lots, chains. The bank's audit log keeps the result.

    With FILES verify that they are as the bank signed them; this needs only its public keys, no bank. The exit status
    is 0 if all are intact, 1 if one was altered, 3 if one is not signed, 4 if one is signed with an unknown key.
    """
    if files:
        verify_files(files, key)
        return
    settings = context.settings()
    lines = asyncio.run(context.archive(settings).lines()) if seals is None else _seal_lines(seals)

    async def check(conn: Connection) -> Report:
        _, vault = await context.check_bank(conn, settings)  # another key would find every row tampered with
        keys = DataKeys(context.master_keys(settings, vault))
        dsn = settings.database_url or None
        report = await verify_with_progress(conn, vault=vault, keys=keys, seals=lines, dsn=dsn)
        if not await record_verification(conn, vault, report, operator=settings.operator):
            command.print_warning("The audit log does not keep this result: the user of the database may only read.")
        return report

    print_report(run_with_connection(context, check))


def _seal_lines(seals: Path) -> list[str]:
    try:
        return seals.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError) as error:
        raise CliError(f"The seals cannot be read: {error}", "Choose another file.") from error


async def verify_with_progress(
    conn: Connection,
    *,
    vault: Vault | None = None,
    keys: DataKeys | None = None,
    seals: Sequence[str] = (),
    dsn: str | None = None,
) -> Report:
    """Verify the bank, with a progress bar."""
    columns = (
        TextColumn("Verifying"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.completed:,} of {task.total:,} commits"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=command.console, transient=True) as bar:
        task = bar.add_task("", total=0)

        def progress(so_far: int, total: int) -> None:
            bar.update(task, completed=so_far, total=total)

        return await verify_bank(conn, progress=progress, vault=vault, data_keys=keys, seals=seals, dsn=dsn)


def print_report(report: Report, *, with_counts: bool = True) -> None:
    """Print how many rows were checked. Raises CliError with the first bad row."""
    if with_counts:
        command.console.print(command.key_value_table((what, f"{count:,}") for what, count in report.checked.items()))
    if report.first is None:
        command.print_success(
            "The ledger and the audit log are intact: of what they prove, every row is as it was written."
        )
        command.print_line(_NOT_PROVEN)
        return
    for finding in report.findings[:MAX_SHOWN]:
        command.print_error(str(finding))
    raise CliError(
        f"The first bad row is in {report.first.table}: {report.first}",
        "Stop writing to this database, keep a copy of it, and compare with the last backup.",
    )
