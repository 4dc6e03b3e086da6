"""`billfold reconcile`: statements against the ledger, and the breaks between them."""

from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Literal
from uuid import UUID

import msgspec
import typer

from billfold.cli.command import EXAMPLE_ID, CommandGroup, Row, console, key_value_table, print_line, table
from billfold.cli.context import CliError
from billfold.dual_control.cli import said_of
from billfold.identity.operators import Operator
from billfold.ledger.bank import Bank
from billfold.ledger.types import Rail
from billfold.payments.files.exchange import FILE_BYTES_MAX
from billfold.payments.files.retries import retry_state_of
from billfold.platform.dates import et_date, format_eastern
from billfold.reconciliation import decisions, store
from billfold.reconciliation.types import Break, BreakStatus, Resolution
from billfold.reconciliation.worker import StatementFiles, reconcile

group = CommandGroup("reconcile", "Reconcile statements of the reserve, the custodian and dealers.", example="breaks")

_SHOWN = 200
_CANDIDATES = 5
_OVERVIEW = timedelta(days=7)
BreakId = Annotated[UUID, typer.Argument(help="The break's id, from `billfold reconcile breaks`.")]
Reason = Annotated[str, typer.Option(help="The explanation, for the audit log.")]


@group.without_command
async def run(bank: Bank) -> str:
    """Reconcile what has arrived, open a break for each day without a statement, and show the last days."""
    await reconcile(bank)
    bank_id, since = bank.own_id, et_date(await bank.now()) - _OVERVIEW
    rows = [
        (each.day, each.source, each.account, f"{each.matched} of {each.lines}" if each.file_id else "no statement")
        for each in await store.list_days(bank.pool, bank_id, since)
    ]
    if rows:
        console.print(table("Statements of the last days", ("Day", "Source", "Account", "Matched>"), rows))
    count = len(await _list(bank, BreakStatus.OPEN))
    return f"{count} breaks are open: billfold reconcile breaks." if count else "No break is open."


@group.command("import statement.xml", "import recap.csv")
async def import_(bank: Bank, file: Annotated[Path, typer.Argument(help="A camt.053, semt.002 or recap.")]) -> str:
    """Import a statement: stored first, then reconciled."""
    try:
        content = file.read_bytes() if file.stat().st_size <= FILE_BYTES_MAX else None
    except OSError as error:
        raise CliError(f"{file} cannot be read: {error.strerror}.", "Name a file that you may read.") from None
    if content is None:
        raise CliError(f"{file} is larger than {FILE_BYTES_MAX // 2**20} MiB.", "Import one statement at a time.")
    stored = await StatementFiles().import_file(bank, file.name, content, by=_operator(bank))
    failure = retry_state_of(stored)
    if stored.report is not None:
        print_line(msgspec.json.format(stored.report, indent=2))
    if stored.state == "REFUSED" or failure is not None:
        told = f"waits: {failure.words()}" if failure else "is refused"
        raise CliError(f"{stored.name} {told}.", f"See `billfold files show {stored.file_id}`.")
    return f"{stored.name} is reconciled."


@group.table(
    "breaks",
    "breaks --closed",
    columns=("break", "day", "source", "cause", "subject", "stated>", "booked>", "age>", "owner"),
    empty="No break is open.",
)
async def breaks(
    bank: Bank, *, closed: Annotated[bool, typer.Option("--closed", help="Show those that were closed.")] = False
) -> Iterable[Row]:
    """List the open breaks, oldest first."""
    rows = await _list(bank, BreakStatus.CLOSED if closed else BreakStatus.OPEN)
    today = et_date(await bank.now())
    return [
        (
            each.break_id,
            each.day,
            each.source,
            each.cause,
            each.subject,
            decisions.side_of(each, each.stated),
            decisions.side_of(each, each.booked),
            each.resolution or f"{(today - et_date(each.seen_at)).days} days",
            each.owner or "",
        )
        for each in rows
    ]


@group.view(f"show {EXAMPLE_ID}")
async def show(bank: Bank, break_id: BreakId) -> None:
    """Show a break, and the open breaks that would cancel it out, the nearest first."""
    row = await store.get_break(bank.pool, bank.own_id, break_id)
    facts = [
        ("break", decisions.describe(row)),
        ("rail, reference", " ".join(filter(None, (row.rail, row.reference))) or "none"),
        ("detail", row.detail or ""),
        ("first seen", format_eastern(row.seen_at)),
        ("owner", row.owner or "nobody"),
        ("note", row.note or ""),
        ("status", row.resolution or row.status),
    ]
    console.print(key_value_table(facts))
    for each in await store.list_candidates(bank.pool, row, _CANDIDATES):
        print_line(f"Candidate {each.break_id}: {decisions.describe(each)}")


@group.command(f"assign {EXAMPLE_ID} --owner 'Olga' --note 'Asked the bank'")
async def assign(
    bank: Bank,
    break_id: BreakId,
    *,
    owner: Annotated[str | None, typer.Option(help="Who works on it; '' for nobody.")] = None,
    note: Annotated[str | None, typer.Option(help="What is known.")] = None,
) -> str:
    """Name the owner of a break, and note what is known of it."""
    row = await store.get_break(bank.pool, bank.own_id, break_id)
    owner, note = [(old or "") if new is None else new for new, old in ((owner, row.owner), (note, row.note))]
    await decisions.assign(bank, break_id, owner=owner, note=note, by=_operator(bank))
    return f"The owner is {owner or 'nobody'}."


@group.command(f"close {EXAMPLE_ID} explained --reason 'The bank reverses it tomorrow'")
async def close(
    bank: Bank,
    break_id: BreakId,
    how: Annotated[
        Literal["EXPLAINED", "LOSSES", "INVENTORY"],
        typer.Argument(case_sensitive=False, help="With an explanation, or by a posting to this account."),
    ],
    *,
    reason: Reason,
) -> str:
    """Propose to close a break; another operator confirms it."""
    by = _operator(bank)
    return said_of(await decisions.propose_close(bank, break_id, Resolution(how), reason=reason, by=by))


@group.command(f"hold {EXAMPLE_ID} wire --reason 'Money for an unknown account'")
async def hold(
    bank: Bank,
    break_id: BreakId,
    rail: Annotated[Literal["WIRE", "ACH"], typer.Argument(case_sensitive=False, help="How the money moved.")],
    *,
    reason: Reason,
) -> str:
    """Propose to hold the difference of a line in suspense; the break closes itself with the next close."""
    by = _operator(bank)
    return said_of(await decisions.propose_hold(bank, break_id, Rail(rail), reason=reason, by=by))


async def _list(bank: Bank, status: BreakStatus) -> list[Break]:
    values = bank.own_id, status, None, None, None
    is_closed = status == BreakStatus.CLOSED
    return await store.BREAKS.rows(bank.pool, *values, descending=is_closed, limit=_SHOWN)


def _operator(bank: Bank) -> Operator:
    return Operator.of_command_line(bank.settings.operator)
