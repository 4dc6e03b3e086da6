"""`billfold backup`, `billfold backups` and `billfold restore`: the embedded database and the bank's files."""

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeElapsedColumn

from billfold.backup.folder import BackupFolder, check_apart
from billfold.backup.restore import StepProgress, check_restorable, choose_backup, count_missing_files, restore_files
from billfold.backup.take import BytesProgress, archive_log, archive_no_log, take_backup
from billfold.cli.command import CommandGroup, Row, console, print_warning
from billfold.cli.context import CliError, with_connection
from billfold.data_keys.keys import DataKeys
from billfold.migrations import runner
from billfold.platform.database.connection import Connection
from billfold.platform.dates import parse_instant
from billfold.platform.settings.settings import Settings
from billfold.wiring.cli.verify import print_report, verify_with_progress
from billfold.wiring.cli_context import Wiring

_PAGE = "docs/operate/backup_restore.md"
_OWN = f"Use its own tools, such as pgBackRest or WAL-G: {_PAGE}."

group = CommandGroup()
Folder = Annotated[Path, typer.Argument(help="The folder of the backups, best on another disk.")]


@group.command("backup /mnt/backups --continuous", "backup /mnt/backups --keep 7")
def backup(
    context: Wiring,
    folder: Folder,
    *,
    continuous: Annotated[
        bool | None,
        typer.Option("--continuous/--no-continuous", help="Start or stop archiving the log there, too."),
    ] = None,
    keep: Annotated[int | None, typer.Option(min=1, help="Remove all but the newest backups.")] = None,
) -> str:
    """Back up the bank with its files while it is in use. It is restored by `billfold restore`.

    With --continuous every later moment can be restored too, until the last minute.
    """
    settings = _embedded(context, "backed up")
    if not (settings.state_dir / "postgres").exists():
        raise CliError(f"There is no bank in {settings.state_dir}.", "Set BILLFOLD_STATE_DIR to its folder.")
    backups = BackupFolder(folder)
    check_apart(settings, backups.path)
    with context.database(settings, lambda _: None) as database:
        if continuous:  # before the backup, so that no moment after it is missing
            asyncio.run(archive_log(database.owner_dsn, backups, settings.state_dir.resolve() / "postgres"))
        elif continuous is False:
            asyncio.run(archive_no_log(database.owner_dsn))
        with _bytes_bar() as progress:
            made, removed = asyncio.run(
                take_backup(database.owner_dsn, settings, backups, keep=keep, progress=progress)
            )
    if not made.has_key:
        print_warning("The encryption key is not in the backup: keep a copy of it elsewhere.")
    gone = f" {len(removed)} older ones were removed." if removed else ""
    return f"Backup {made.label}: {made.size_bytes / 2**20:,.1f} MiB in {backups.path / made.label}.{gone}"


@group.table("backups /mnt/backups", columns=("backup", "whole at", "MiB>", "release", "schema>", "key"))
def backups(folder: Folder) -> Iterable[Row]:
    """List the backups of a folder, and the end of its archived log."""
    found = BackupFolder(folder)
    rows: list[Row] = [
        (
            each.label,
            each.ended_at,
            f"{each.size_bytes / 2**20:,.1f}",
            each.release,
            each.schema_version,
            "in it" if each.has_key else "not in it",
        )
        for each in found.list_backups()
    ]
    if segments := found.segments():
        newest = datetime.fromtimestamp(segments[-1].stat().st_mtime).astimezone()
        rows.append(("archived log", newest, f"{len(segments) * 16:,}", "", "", ""))
    return rows


@group.command("restore /mnt/backups", "restore /mnt/backups --to 2026-11-23T14:05:00-05:00")
def restore(
    context: Wiring,
    folder: Folder,
    *,
    to: Annotated[str | None, typer.Option(help="A moment with its offset; if omitted, the latest.")] = None,
    label: Annotated[str | None, typer.Option("--backup", help="The backup; if omitted, the newest suitable.")] = None,
) -> str:
    """Restore the bank into an empty state directory, as of a moment, and verify it. Overwrites nothing."""
    settings = _embedded(context, "restored")
    found = BackupFolder(folder)
    moment = None if to is None else _moment(to)
    chosen = choose_backup(found, label, moment)
    newest = runner.read_migrations()[-1].version
    check_restorable(chosen, settings, found, schema_version=newest)
    with _step_bar() as progress:
        restore_files(chosen, settings, found, to=moment, progress=progress)
    if chosen.schema_version < newest:
        return f"Restored from {chosen.label}, a backup of release {chosen.release}. Next: `billfold migrate up`."
    _verify(context, settings)
    return f"Restored from {chosen.label} into {settings.state_dir}; the ledger and the audit log are intact."


def _embedded(context: Wiring, done: str) -> Settings:
    settings = context.settings()
    if settings.database_url is not None:
        raise CliError(f"A PostgreSQL of your own (BILLFOLD_DATABASE_URL) is not {done} by this command.", _OWN)
    return settings


def _moment(text: str) -> datetime:
    try:
        return parse_instant(text)
    except ValueError as error:
        raise CliError(f"{text} is not a time with an offset.", "Like --to 2026-11-23T14:05:00-05:00.") from error


def _verify(context: Wiring, settings: Settings) -> None:
    """Verify the restored bank; list documents that are newer than the backup of the files. Raises CliError."""
    with context.database(settings, lambda _: None) as database:

        async def check(conn: Connection) -> None:
            _, vault = await context.check_bank(conn, settings)
            keys = DataKeys(context.master_keys(settings, vault))
            report = await verify_with_progress(conn, vault=vault, keys=keys)
            missing = await count_missing_files(conn, context.files(settings))
            if not report.is_clean:
                print_report(report)
            if missing:
                print_warning(f"{missing} files of documents are newer than the backup. {_PAGE}")

        asyncio.run(with_connection(database.dsn, check))


@contextmanager
def _bytes_bar() -> Iterator[BytesProgress]:
    with _bar() as bar:
        task = bar.add_task("Backing up", total=None)

        def show(done: int, total: int | None) -> None:
            bar.update(task, completed=done, total=total)

        yield show


@contextmanager
def _step_bar() -> Iterator[StepProgress]:
    with _bar() as bar:
        task = bar.add_task("", total=None)

        def show(what: str, done: int, total: int) -> None:
            bar.update(task, description=what, completed=done, total=total or None)

        yield show


def _bar() -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeElapsedColumn())
    return Progress(*columns, console=console, transient=True)
