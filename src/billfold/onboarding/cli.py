"""`billfold review`: what waits for somebody of the bank to look at it and decide."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer
from rich.markup import escape

from billfold.cli.context import CannotGoOn, ground_of
from billfold.cli.output import console, done, eastern, example, say
from billfold.cli.resources import with_bank
from billfold.documents import store as document_store
from billfold.documents.ports import FileLost
from billfold.onboarding import review_queue as reviewing
from billfold.onboarding.review_queue import Verdict
from billfold.platform.errors import NotFound

if TYPE_CHECKING:
    from billfold.documents.types import DocumentRow
    from billfold.ledger.bank import Bank
    from billfold.onboarding.review_queue import Waiting

ROWS_MOST = 200

app = typer.Typer(
    no_args_is_help=True,
    help="See what waits for a review, and decide it.",
    epilog=example("billfold review list"),
)

ObjectId = Annotated[UUID, typer.Argument(help="Its id, as the list shows it.")]


@app.command("list", epilog=example("billfold review list", "billfold review list --kind document"))
def list_waiting(
    ctx: typer.Context,
    *,
    kind: Annotated[
        str | None,
        typer.Option(help=f"One of {', '.join(each.kind for each in reviewing.REVIEWS)}."),
    ] = None,
) -> None:
    """List what waits, the oldest first."""
    kinds = [each.kind for each in reviewing.REVIEWS]
    if kind is not None and kind not in kinds:
        raise CannotGoOn(f"Nothing of kind {kind} is reviewed.", f"Use one of {', '.join(kinds)}.")

    async def work(bank: Bank) -> list[Waiting]:
        return await reviewing.list_waiting(bank, ROWS_MOST, kind)

    rows = with_bank(ground_of(ctx), work)
    if not rows:
        say("Nothing waits.")
        return
    for row in rows:
        # One line each, however narrow the window: ids are there to be copied.
        told = f"of {row.customer_id} since {eastern(row.since)}"
        line = f"{row.kind:<13}{row.object_id}  {escape(row.what)}  [dim]{told}[/]"
        console.print(line, soft_wrap=True)


@app.command(epilog=example("billfold review approve 5d0c2a4e-8f00-8000-8000-0000000000e1"))
def approve(
    ctx: typer.Context,
    object_id: ObjectId,
    *,
    reason: Annotated[
        str | None, typer.Option(help="What was found; the customer sees it.")
    ] = None,
) -> None:
    """Approve it: a counterparty with its documents, or a document by itself."""
    _decide(ctx, object_id, Verdict(approved=True, reason=reason))


@app.command(
    epilog=example("billfold review reject 5d0c...e1 --reason 'The account number is missing.'")
)
def reject(
    ctx: typer.Context,
    object_id: ObjectId,
    *,
    reason: Annotated[str, typer.Option(help="Why; the customer sees it.")],
) -> None:
    """Reject it: a counterparty for good, or a document, which can then be sent again."""
    _decide(ctx, object_id, Verdict(approved=False, reason=reason))


@app.command(epilog=example("billfold review file 5d0c...e1 --out statement.pdf"))
def file(
    ctx: typer.Context,
    document_id: ObjectId,
    *,
    out: Annotated[Path, typer.Option(help="Where to write it.")],
) -> None:
    """Write a document's file to look at it. Open it where nothing can happen."""

    async def work(bank: Bank) -> tuple[DocumentRow, bytes]:
        row = await document_store.get_document(bank.pool, document_id)
        if row.file is None:
            raise CannotGoOn("The document has no file yet.", "Wait until it is uploaded.")
        try:
            return row, await bank.files.fetch(row.file)
        except FileLost as lost:
            raise CannotGoOn(f"The file is lost: {lost}.", "Look for it in the backup.") from None

    row, content = with_bank(ground_of(ctx), work)
    out.write_bytes(content)
    done(f"{row.type} ({row.media_type}, {len(content):,} bytes) is in {out}.")


def _decide(ctx: typer.Context, object_id: UUID, verdict: Verdict) -> None:
    async def work(bank: Bank) -> str:
        return await reviewing.decide(bank, object_id, verdict)

    try:
        done(with_bank(ground_of(ctx), work))
    except NotFound:
        raise CannotGoOn(
            f"There is nothing to review under {object_id}.", "See the list."
        ) from None
