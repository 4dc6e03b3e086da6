"""`billfold files`: what the rails and the bank have handed each other, and what came of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import msgspec
import typer

from billfold.cli.context import CliContext, CliError, cli_context
from billfold.cli.output import console, example, format_eastern, key_value_table, print_line, print_success, table
from billfold.cli.resources import run_with_bank
from billfold.payments.files import exceptions
from billfold.payments.files import store as files_store
from billfold.platform.clock import wall_now
from billfold.platform.errors import NotFound

if TYPE_CHECKING:
    from billfold.ledger.bank import Bank
    from billfold.payments.files.store import RailFile

app = typer.Typer(
    no_args_is_help=True,
    help="Show files for and from the rails, and take those that have arrived.",
    epilog=example("billfold files list"),
)
_RAILS = ("ACH", "WIRE")
_STATES = ("MADE", "HANDED", "ARRIVED", "TAKEN", "REFUSED")


@app.command("list", epilog=example("billfold files list --rail WIRE --state REFUSED"))
def list_(
    ctx: typer.Context,
    rail: Annotated[str | None, typer.Option(help="ACH or WIRE.")] = None,
    state: Annotated[str | None, typer.Option(help="MADE, HANDED, ARRIVED, TAKEN or REFUSED.")] = None,
) -> None:
    """List the last hundred files, newest first; those of one instant by name, backwards."""

    async def work(bank: Bank) -> list[RailFile]:
        return await files_store.list_files(bank.pool, rail=_upper(rail), state=_upper(state))

    _check_choice("--rail", rail, _RAILS)
    _check_choice("--state", state, _STATES)
    files = run_with_bank(cli_context(ctx), work)
    if not files:
        print_success("There are no such files.")
        return
    columns = ("file", "rail", "way", "name", "state", "bytes>", "since")
    rows = [
        (f.file_id, f.rail, f.direction, f.name, _state(f), f.size_bytes, format_eastern(f.created_at)) for f in files
    ]
    console.print(table("", columns, rows))


@app.command(epilog=example("billfold files show 5d0c2a4e-8f00-8000-8000-0000000000e1 --content"))
def show(
    ctx: typer.Context,
    file_id: Annotated[UUID, typer.Argument(help="The file's id, from the list.")],
    *,
    content: Annotated[bool, typer.Option("--content", help="Print what it says.")] = False,
) -> None:
    """Show a file and its report: for one that is refused or waits the lines and the reasons."""

    async def work(bank: Bank) -> tuple[RailFile, bytes]:
        return await _get(bank, file_id), await files_store.read_content(bank.pool, file_id)

    file, raw = run_with_bank(cli_context(ctx), work)
    if content:
        typer.echo(raw.decode(errors="replace"))
        return
    console.print(
        key_value_table(
            [
                ("name", file.name),
                ("rail", f"{file.rail} {file.direction}"),
                ("state", _state(file)),
                ("sha256", file.sha256),
                ("since", format_eastern(file.created_at)),
            ]
        )
    )
    if file.report is not None:
        report: dict[str, Any] = msgspec.json.decode(file.report)
        print_line(msgspec.json.format(msgspec.json.encode(report), indent=2).decode())


@app.command(epilog=example("billfold files take"))
def ingest(ctx: typer.Context) -> None:
    """Take the files that have arrived, as a worker does by itself."""
    ground: CliContext = cli_context(ctx)
    ingested = run_with_bank(ground, ground.ingest_files)
    print_success(f"{ingested} files were looked at." if ingested else "No file has arrived.")


@app.command(epilog=example("billfold files retry 5d0c2a4e-8f00-8000-8000-0000000000e1"))
def retry(ctx: typer.Context, file_id: Annotated[UUID, typer.Argument(help="The file's id, from the list.")]) -> None:
    """Try a file again that could not be finished, without waiting for its time."""
    ground: CliContext = cli_context(ctx)

    async def work(bank: Bank) -> RailFile:
        await exceptions.retry_now(bank.pool, await _get(bank, file_id), wall_now())
        await ground.ingest_files(bank)
        return await _get(bank, file_id)

    file = run_with_bank(ground, work)
    failure = exceptions.retry_state_of(file)
    if failure is not None:
        raise CliError(
            f"{file.name} still waits: {failure.words()}", f"`billfold files show {file_id}` says all of it."
        )
    print_success(f"{file.name} is {file.state}.")


async def _get(bank: Bank, file_id: UUID) -> RailFile:
    try:
        return await files_store.find_file(bank.pool, file_id)
    except NotFound:
        raise CliError("No file has this id.", "`billfold files list` shows their ids.") from None


def _state(file: RailFile) -> str:
    failure = exceptions.retry_state_of(file)
    return file.state if failure is None else f"{file.state}, waits: {failure.words()}"


def _check_choice(option: str, text: str | None, choices: Sequence[str]) -> None:
    if text is not None and text.upper() not in choices:
        raise typer.BadParameter(f"is one of {', '.join(choices)}", param_hint=option)


def _upper(text: str | None) -> str | None:
    return None if text is None else text.upper()
