"""Counterparties: whom a customer pays. Here the `on_us` kind, a pocket of this bank."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from billfold.flows.command import Books, Command, Context, Outcome, book_of
from billfold.flows.draft import as_json
from billfold.kit.errors import NotFound, Refused


class AddOnUsCounterparty(Command, frozen=True, kw_only=True):
    """Link a pocket of the bank, found by its 12-digit network address, as payee."""

    counterparty_name: dict[str, Any]
    display_name: str | None
    account_number: str
    target_customer_id: UUID
    target_pocket_id: UUID


class UpdateCounterparty(Command, frozen=True, kw_only=True):
    """Give another display name, or unlink for ever."""

    counterparty_id: UUID
    display_name: str | None = None
    rename: bool = False
    unlink: bool = False


def add_on_us_counterparty(books: Books, cmd: AddOnUsCounterparty, ctx: Context) -> Outcome:
    """The address was found, so the counterparty is LINKED at once. Refuses: own-pocket."""
    book = book_of(books, cmd.customers[0])
    if book.account_status != "OPEN":
        raise Refused("customer-not-open", f"The customer is {book.account_status}.")
    counterparty_id = ctx.ids.next()
    verification = {
        "id": str(ctx.ids.next()),
        "type": "name_match",
        "status": "NOT_REQUIRED",
        "description": "The network address belongs to a pocket of this bank.",
        "supporting_documents": [],
    }
    book.put(
        book.counterparties,
        counterparty_id,
        ("on_us", "LINKED", cmd.target_customer_id, cmd.target_pocket_id),
    )
    book.draft.counterparties.append(
        (
            book.customer_id,
            counterparty_id,
            "on_us",
            "LINKED",
            as_json(cmd.counterparty_name),
            cmd.display_name,
            cmd.account_number,
            cmd.target_customer_id,
            cmd.target_pocket_id,
            as_json(verification),
            ctx.now,
            ctx.now,
        )
    )  # fmt: skip
    book.draft.directory.append(
        ("counterparty", str(counterparty_id), book.customer_id, counterparty_id)
    )
    return {"counterparty_id": str(counterparty_id)}


def update_counterparty(books: Books, cmd: UpdateCounterparty, ctx: Context) -> Outcome:
    """Refuses: counterparty-not-linked."""
    book = book_of(books, cmd.customers[0])
    known = book.counterparties.get(cmd.counterparty_id)
    if known is None:
        raise NotFound
    type_, status, customer_id, pocket_id = known
    if status == "UNLINKED":
        raise Refused("counterparty-not-linked", "The counterparty has been unlinked.")
    if cmd.rename:
        book.change(
            "counterparty", cmd.counterparty_id, display_name=cmd.display_name, updated_at=ctx.now
        )
    if cmd.unlink:
        book.put(
            book.counterparties, cmd.counterparty_id, (type_, "UNLINKED", customer_id, pocket_id)
        )
        book.change("counterparty", cmd.counterparty_id, status="UNLINKED", updated_at=ctx.now)
    return {"counterparty_id": str(cmd.counterparty_id)}
