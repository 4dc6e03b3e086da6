"""`billfold review`: items that wait for a review by the bank."""

from pathlib import Path
from typing import Annotated
from uuid import UUID

import typer
from rich.markup import escape

from billfold.cli.command import EXAMPLE_ID, CommandGroup, console, print_line
from billfold.cli.context import CliError
from billfold.documents import store
from billfold.documents.ports import StoredFileMissing
from billfold.documents.store import fetch_opened
from billfold.identity.operators import Operator
from billfold.ledger.bank import Bank
from billfold.onboarding import review_queue
from billfold.onboarding.review_queue import ReviewDecision
from billfold.platform.dates import format_eastern
from billfold.platform.errors import NotFound

MAX_ROWS = 200
KINDS = [each.kind for each in review_queue.REVIEW_KINDS]

group = CommandGroup("review", "Show and decide items that wait for a review.", example="list")

ObjectId = Annotated[UUID, typer.Argument(help="Its id, from the list.")]


@group.view("list", "list --kind document")
async def list_pending(
    bank: Bank, *, kind: Annotated[str | None, typer.Option(help=f"One of {', '.join(KINDS)}.")] = None
) -> None:
    """List pending items, oldest first."""
    if kind is not None and kind not in KINDS:
        raise CliError(f"Unknown kind {kind}.", f"Use one of {', '.join(KINDS)}.")
    rows = await review_queue.list_waiting(bank, MAX_ROWS, kind)
    if not rows:
        print_line("Nothing waits.")
    for row in rows:
        # One line each, even in a narrow window, so that ids can be copied.
        context_text = f"of {row.customer_id} since {format_eastern(row.since)}"
        line = f"{row.kind:<13}{row.object_id}  {escape(row.what)}  [dim]{context_text}[/]"
        console.print(line, soft_wrap=True)


@group.command(f"approve {EXAMPLE_ID}")
async def approve(
    bank: Bank,
    object_id: ObjectId,
    *,
    reason: Annotated[str | None, typer.Option(help="The findings; the customer sees them.")] = None,
) -> str:
    """Approve: a counterparty with its documents, a document, or (by two operators) a hit as a false match."""
    return await _decide(bank, object_id, ReviewDecision(approved=True, reason=reason, by=_operator(bank)))


@group.command("reject 5d0c...e1 --reason 'The account number is missing.'")
async def reject(
    bank: Bank, object_id: ObjectId, *, reason: Annotated[str, typer.Option(help="Why; the customer sees it.")]
) -> str:
    """Reject: a counterparty for good, a document, which can be sent again, or a hit as a true match."""
    return await _decide(bank, object_id, ReviewDecision(approved=False, reason=reason, by=_operator(bank)))


@group.command("download 5d0c...e1 --out statement.pdf")
async def download(
    bank: Bank, document_id: ObjectId, *, out: Annotated[Path, typer.Option(help="Where to write it.")]
) -> str:
    """Write a document's file. It comes from outside: open it in isolation."""
    row = await store.get_document(bank.pool, document_id)
    if row.file is None:
        raise CliError("The document has no file yet.", "Wait until it is uploaded.")
    try:
        content = await fetch_opened(bank, row)
    except StoredFileMissing as missing:
        raise CliError(f"The file is missing: {missing}.", "Restore it from the backup.") from None
    out.write_bytes(content)
    return f"{row.type} ({row.media_type}, {len(content):,} bytes) is in {out}."


def _operator(bank: Bank) -> Operator:
    return Operator.of_command_line(bank.settings.operator)


async def _decide(bank: Bank, object_id: UUID, decision: ReviewDecision) -> str:
    try:
        return await review_queue.decide(bank, object_id, decision)
    except NotFound:
        raise CliError(f"No item to review with id {object_id}.", "See the list.") from None
