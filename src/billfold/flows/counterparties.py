"""Counterparties: whom a customer pays, linked, renamed and unlinked."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import msgspec

from billfold.domain.counterparties import rules
from billfold.domain.counterparties.types import Payee, one_line
from billfold.flows.book import Book
from billfold.flows.command import Books, Command, Context, Outcome, book_of
from billfold.flows.draft import as_json
from billfold.kit.errors import NotFound, Refused

EXPIRES = "counterparty.expire"
"""The appointment at which an incoming wire is no longer waited for."""
DEPOSITS_DUE = "ach.micro_deposits"
"""The appointment at which the two deposits are sent."""
_SAID = {
    "LINKED": "was linked",
    "PENDING": "was added and waits for its verification",
    "UNLINKED": "was unlinked",
}
_DEPOSIT_MOST = 99


class AddCounterparty(Command, frozen=True, kw_only=True):
    """Link an account as payee; `details` are the fields of its variant, checked before.

    `verification` is how it shall be shown that the account is theirs; None for those that need
    nothing. `holder` is whose account it is, where the account is one of this bank; `linked` what
    a linking provider says of it: `id`, `mask`, `status` and the sealed `access`.
    """

    type: str
    counterparty_name: dict[str, Any]
    display_name: str | None = None
    details: dict[str, Any]
    verification: str | None = None
    document_ids: tuple[UUID, ...] = ()
    holder: str | None = None
    linked: dict[str, str] | None = None
    target_customer_id: UUID | None = None
    target_pocket_id: UUID | None = None


class UpdateCounterparty(Command, frozen=True, kw_only=True):
    """Give another display name, or unlink for ever."""

    counterparty_id: UUID
    display_name: str | None = None
    rename: bool = False
    unlink: bool = False


def add_counterparty(books: Books, cmd: AddCounterparty, ctx: Context) -> Outcome:
    """LINKED at once where nothing is left to verify, else PENDING. Refuses: customer-not-open."""
    book = book_of(books, cmd.customers[0])
    if book.account_status != "OPEN":
        raise Refused("customer-not-open", f"The customer is {book.account_status}.")
    counterparty_id = ctx.ids.next()
    name = one_line(cmd.counterparty_name)
    verification = _verification(book, cmd, ctx, name)
    status = rules.first_status(verification)
    if reason := ctx.terms.screening.unverifiable_name(name):
        verification = rules.ended(verification, "REJECTED", reason)
        status = "UNLINKED"
    payee = Payee(
        counterparty_id=counterparty_id,
        type=cmd.type,
        status=status,
        counterparty_name=cmd.counterparty_name,
        verification=verification,
        details=cmd.details,
        target_customer_id=cmd.target_customer_id,
        target_pocket_id=cmd.target_pocket_id,
    )
    remember(book, payee)
    number = cmd.details.get("account_number") or cmd.details.get("identifier")
    book.draft.counterparties.append(
        (
            book.customer_id,
            counterparty_id,
            cmd.type,
            status,
            as_json(cmd.counterparty_name),
            cmd.display_name,
            number,
            cmd.target_customer_id,
            cmd.target_pocket_id,
            as_json(verification),
            as_json(cmd.details),
            ctx.now,
            ctx.now,
        )
    )  # fmt: skip
    book.draft.directory.append(
        ("counterparty", str(counterparty_id), book.customer_id, counterparty_id)
    )
    if verification["type"] == "incoming_wire" and status == "PENDING":
        until = ctx.now + rules.WIRE_AWAITED
        book.draft.agenda.append((EXPIRES, counterparty_id, book.customer_id, until))
    if verification["type"] == "micro_deposits" and status == "PENDING":
        book.draft.agenda.append((DEPOSITS_DUE, counterparty_id, book.customer_id, ctx.now))
    return {
        "counterparty_id": str(counterparty_id),
        "counterparties": [told_of(payee, _SAID[status], cmd.display_name)],
    }


def update_counterparty(books: Books, cmd: UpdateCounterparty, ctx: Context) -> Outcome:
    """Refuses: counterparty-not-linked."""
    book = book_of(books, cmd.customers[0])
    payee = known(book, cmd.counterparty_id)
    if payee.status == "UNLINKED":
        raise Refused("counterparty-not-linked", "The counterparty has been unlinked.")
    if cmd.rename:
        book.change(
            "counterparty", cmd.counterparty_id, display_name=cmd.display_name, updated_at=ctx.now
        )
    if cmd.unlink:
        remember(book, msgspec.structs.replace(payee, status="UNLINKED"))
        book.change("counterparty", cmd.counterparty_id, status="UNLINKED", updated_at=ctx.now)
        said = [told_of(payee, _SAID["UNLINKED"])]
        return {"counterparty_id": str(cmd.counterparty_id), "counterparties": said}
    return {"counterparty_id": str(cmd.counterparty_id)}


def known(book: Book, counterparty_id: UUID) -> Payee:
    """Return a counterparty of the book's customer. Raises NotFound."""
    payee: Payee | None = book.counterparties.get(counterparty_id)
    if payee is None:
        raise NotFound("There is no such counterparty.")
    return payee


def remember(book: Book, payee: Payee) -> None:
    """Keep what a counterparty is from here on; `undo` takes it back."""
    book.draft.proofs.append(("counterparty", payee.counterparty_id, payee.proof))
    book.put(book.counterparties, payee.counterparty_id, payee)
    book.put(book.seen, payee.counterparty_id, payee)


def told_of(payee: Payee, said: str, display_name: str | None = None) -> dict[str, Any]:
    """Return what the team is told of a counterparty, for the outcome's `counterparties`."""
    called = display_name or payee.name
    named = f"The counterparty {called}" if called else "A counterparty"
    return {"counterparty_id": str(payee.counterparty_id), "said": f"{named} {said}."}


def _verification(book: Book, cmd: AddCounterparty, ctx: Context, name: str) -> dict[str, Any]:
    """Return the verification asked for, or the one that makes it needless."""
    verification_id = str(ctx.ids.next())
    if cmd.holder is not None and rules.is_same_name(name, cmd.holder):
        matched = rules.begun("name_match", verification_id)
        return rules.ended(matched, "APPROVED", "The name is that of the account's holder.")
    if cmd.verification in {"incoming_wire", "micro_deposits", "supporting_documents"} and (
        _is_proven(book, cmd.details, name)
    ):
        return rules.begun("pre_verified", verification_id)
    if cmd.verification == "micro_deposits":
        return rules.begun("micro_deposits", verification_id, deposits=_deposits(ctx), failures=0)
    if cmd.linked is not None:
        return rules.linked(verification_id, cmd.linked)
    kind = cmd.verification or ("name_match" if cmd.type == "on_us" else "pre_verified")
    return rules.begun(kind, verification_id, document_ids=map(str, cmd.document_ids))


def _is_proven(book: Book, details: dict[str, Any], name: str) -> bool:
    """Has the customer shown before that this account belongs to somebody of this name?"""
    account = rules.account_of(details)
    return account is not None and any(
        payee.status == "VERIFIED"
        and (other := rules.account_of(payee.details)) is not None
        and rules.is_same_account(account, other)
        and rules.is_same_name(name, payee.name)
        for payee in book.counterparties.values()
    )


def _deposits(ctx: Context) -> list[int]:
    """Return two different amounts in cents that nobody can tell in advance."""
    if known := ctx.terms.screening.deposit_amounts():
        return list(known)
    first = ctx.ids.next().int % _DEPOSIT_MOST
    second = (first + 1 + ctx.ids.next().int % (_DEPOSIT_MOST - 1)) % _DEPOSIT_MOST
    return [1 + first, 1 + second]
