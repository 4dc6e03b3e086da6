"""`billfold files`: files exchanged with the rails, and their states."""

from collections.abc import Iterable
from hashlib import sha256
from typing import Annotated, Literal
from uuid import UUID

import msgspec
import typer

from billfold.cli.command import EXAMPLE_ID, CommandGroup, Row, console, key_value_table, print_line
from billfold.cli.context import CliContext, CliError
from billfold.dual_control.cli import said_of
from billfold.identity.operators import Operator
from billfold.ledger.bank import Bank
from billfold.payments.files import retries, store
from billfold.payments.files.retries import propose_close
from billfold.payments.files.store import read_content
from billfold.payments.files.types import RailFile
from billfold.platform.dates import format_eastern
from billfold.platform.errors import NotFound

group = CommandGroup("files", "Show files to and from the rails, and ingest those that have arrived.", example="list")

FileId = Annotated[UUID, typer.Argument(help="The file's id, from the list.")]
Rail = Annotated[Literal["ACH", "WIRE", "CARD", "CUSTODY", "STATEMENT"] | None, typer.Option(case_sensitive=False)]
State = Annotated[
    Literal["CREATED", "TRANSMITTED", "ARRIVED", "PROCESSED", "REFUSED"] | None, typer.Option(case_sensitive=False)
]


@group.table(
    "list --rail WIRE --state REFUSED",
    columns=("file", "rail", "direction", "name", "state", "bytes>", "since"),
    empty="There are no such files.",
)
async def list_files(bank: Bank, rail: Rail = None, state: State = None) -> Iterable[Row]:
    """List the last hundred files, newest first."""
    files = await store.list_files(bank.pool, rail=rail, state=state)
    return [(f.file_id, f.rail, f.direction, f.name, _state(f), f.size_bytes, f.created_at) for f in files]


@group.view(f"show {EXAMPLE_ID} --content")
async def show(
    bank: Bank, file_id: FileId, *, content: Annotated[bool, typer.Option("--content", help="Print the file.")] = False
) -> None:
    """Show a file and its report: for a refused or failing file, the lines and reasons."""
    file = await _get(bank, file_id)
    plain = await read_content(bank, file_id)
    if content:
        typer.echo(plain.decode(errors="replace"))
        return
    rows = [
        ("name", file.name),
        ("rail", f"{file.rail} {file.direction}"),
        ("state", _state(file)),
        ("sha256", sha256(plain).hexdigest()),
        ("since", format_eastern(file.created_at)),
    ]
    console.print(key_value_table(rows))
    if file.report is not None:
        print_line(msgspec.json.format(file.report, indent=2))


@group.command("ingest")
async def ingest(bank: Bank, context: CliContext) -> str:
    """Ingest the files that have arrived, as a worker does automatically."""
    ingested = await context.ingest_files(bank)
    return f"{ingested} files were ingested." if ingested else "No file has arrived."


@group.command(f"retry {EXAMPLE_ID}")
async def retry(bank: Bank, context: CliContext, file_id: FileId) -> str:
    """Retry a file that failed, without waiting for its next attempt."""
    await _get(bank, file_id)
    await retries.retry_as_operator(bank, file_id, Operator.of_command_line(bank.settings.operator))
    await context.ingest_files(bank)
    file = await _get(bank, file_id)
    failure = retries.retry_state_of(file)
    if failure is not None:
        raise CliError(f"{file.name} still waits: {failure.words()}", f"Run `billfold files show {file_id}`.")
    return f"{file.name} is {file.state}."


@group.command(f"close {EXAMPLE_ID} --reason 'Returned by hand'")
async def close(
    bank: Bank,
    file_id: FileId,
    *,
    reason: Annotated[str, typer.Option(help="How the lines that are not booked were handled, for its report.")],
) -> str:
    """Propose to close a failing file: booked lines stay booked, and the rest is never tried again."""
    await _get(bank, file_id)
    by = Operator.of_command_line(bank.settings.operator)
    return said_of(await propose_close(bank, file_id, reason=reason, by=by))


async def _get(bank: Bank, file_id: UUID) -> RailFile:
    try:
        return await store.find_file(bank.pool, file_id)
    except NotFound:
        raise CliError("No file has this id.", "See `billfold files list`.") from None


def _state(file: RailFile) -> str:
    failure = retries.retry_state_of(file)
    return file.state if failure is None else f"{file.state}, waiting: {failure.words()}"
