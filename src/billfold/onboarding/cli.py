"""`billfold review`: what waits for somebody of the bank to look at it and decide."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer
from rich.markup import escape

from billfold.cli.context import CliError, cli_context
from billfold.cli.output import console, example, format_eastern, print_line, print_success
from billfold.cli.resources import run_with_bank
from billfold.documents import store as document_store
from billfold.documents.ports import StoredFileMissing
from billfold.onboarding import review_queue as reviewing
from billfold.onboarding.review_queue import ReviewDecision
from billfold.platform.errors import NotFound

if TYPE_CHECKING:
    from billfold.documents.types import DocumentRow
    from billfold.ledger.bank import Bank
    from billfold.onboarding.review_queue import PendingReview

MAX_ROWS = 200

app = typer.Typer(
    no_args_is_help=True, help="See what waits for a review, and decide it.", epilog=example("billfold review list")
)

ObjectId = Annotated[UUID, typer.Argument(help="Its id, as the list shows it.")]


@app.command("list", epilog=example("billfold review list", "billfold review list --kind document"))
def list_pending(
    ctx: typer.Context,
    *,
    kind: Annotated[
        str | None, typer.Option(help=f"One of {', '.join(each.kind for each in reviewing.REVIEW_KINDS)}.")
    ] = None,
) -> None:
    """List what waits, the oldest first."""
    kinds = [each.kind for each in reviewing.REVIEW_KINDS]
    if kind is not None and kind not in kinds:
        raise CliError(f"Nothing of kind {kind} is reviewed.", f"Use one of {', '.join(kinds)}.")

    async def work(bank: Bank) -> list[PendingReview]:
        return await reviewing.list_waiting(bank, MAX_ROWS, kind)

    rows = run_with_bank(cli_context(ctx), work)
    if not rows:
        print_line("Nothing waits.")
        return
    for row in rows:
        # One line each, however narrow the window: ids are there to be copied.
        context_text = f"of {row.customer_id} since {format_eastern(row.since)}"
        line = f"{row.kind:<13}{row.object_id}  {escape(row.what)}  [dim]{context_text}[/]"
        console.print(line, soft_wrap=True)


@app.command(epilog=example("billfold review approve 5d0c2a4e-8f00-8000-8000-0000000000e1"))
def approve(
    ctx: typer.Context,
    object_id: ObjectId,
    *,
    reason: Annotated[str | None, typer.Option(help="What was found; the customer sees it.")] = None,
) -> None:
    """Approve it: a counterparty with its documents, or a document by itself."""
    _decide(ctx, object_id, ReviewDecision(approved=True, reason=reason))


@app.command(epilog=example("billfold review reject 5d0c...e1 --reason 'The account number is missing.'"))
def reject(
    ctx: typer.Context, object_id: ObjectId, *, reason: Annotated[str, typer.Option(help="Why; the customer sees it.")]
) -> None:
    """Reject it: a counterparty for good, or a document, which can then be sent again."""
    _decide(ctx, object_id, ReviewDecision(approved=False, reason=reason))


@app.command(epilog=example("billfold review file 5d0c...e1 --out statement.pdf"))
def file(
    ctx: typer.Context, document_id: ObjectId, *, out: Annotated[Path, typer.Option(help="Where to write it.")]
) -> None:
    """Write a document's file to look at it. Open it where nothing can happen."""

    async def work(bank: Bank) -> tuple[DocumentRow, bytes]:
        row = await document_store.get_document(bank.pool, document_id)
        if row.file is None:
            raise CliError("The document has no file yet.", "Wait until it is uploaded.")
        try:
            return row, await bank.files.fetch(row.file)
        except StoredFileMissing as missing:
            raise CliError(f"The file is lost: {missing}.", "Look for it in the backup.") from None

    row, content = run_with_bank(cli_context(ctx), work)
    out.write_bytes(content)
    print_success(f"{row.type} ({row.media_type}, {len(content):,} bytes) is in {out}.")


def _decide(ctx: typer.Context, object_id: UUID, verdict: ReviewDecision) -> None:
    async def work(bank: Bank) -> str:
        return await reviewing.decide(bank, object_id, verdict)

    try:
        print_success(run_with_bank(cli_context(ctx), work))
    except NotFound:
        raise CliError(f"There is nothing to review under {object_id}.", "See the list.") from None
