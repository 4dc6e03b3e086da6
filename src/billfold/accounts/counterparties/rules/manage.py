"""Linking, renaming and unlinking counterparties."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

import msgspec

from billfold.accounts.counterparties import types
from billfold.accounts.counterparties.commands import AddCounterparty, UpdateCounterparty
from billfold.accounts.counterparties.names import NameMatch, match_names
from billfold.accounts.counterparties.rules import verification_kinds
from billfold.accounts.counterparties.types import CounterpartyRow, CounterpartyStatus, Payee
from billfold.events import kinds
from billfold.ledger.book.book import Book
from billfold.ledger.book.draft import to_json
from billfold.ledger.book.postings import Fingerprint
from billfold.ledger.book.recording import event
from billfold.ledger.commands import Books, Outcome, book_of, decides
from billfold.ledger.context import Context
from billfold.ledger.customers import CustomerStatus
from billfold.platform.errors import NotFound, Refused

VERIFICATION_EXPIRY = "counterparty.expire"
"""The scheduled job that ends the wait for an incoming wire."""
DEPOSITS_DUE = "ach.micro_deposits"
"""The scheduled job that sends the two deposits."""
DEPOSITS_CALLER = "micro-deposits"
"""The caller of the command that sends them; its key is the counterparty's id."""
SCREENING_DUE = "counterparty.screen"
"""The scheduled job that compares the names of a counterparty with the sanctions list in force."""
_STATUS_TEXTS = {
    CounterpartyStatus.LINKED: "was linked",
    CounterpartyStatus.PENDING: "was added and waits for its verification",
    CounterpartyStatus.UNLINKED: "was unlinked",
}
_DEPOSIT_MOST = 99


@decides(AddCounterparty)
def add_counterparty(books: Books, cmd: AddCounterparty, ctx: Context) -> Outcome:
    """LINKED at once if no verification is needed, UNLINKED if the name is not the owner's, else PENDING.

    It cannot be paid before its names are screened (`settle_screening`).

    Refuses: customer-not-open, name-checks-exhausted.
    """
    book = book_of(books, cmd.customers[0])
    if book.account_status != CustomerStatus.OPEN:
        raise Refused("customer-not-open", f"The customer is {book.account_status}.")
    counterparty_id = ctx.ids.next()
    name = types.format_name(cmd.counterparty_name)
    check = _check_name(book, cmd, ctx)
    verification = _verification(book, cmd, ctx, name=name, check=check)
    if check is not None:
        verification["name_check"] = check
    verification["sanctions"] = types.SanctionsStatus.CLEAR if cmd.is_screened else types.SanctionsStatus.PENDING
    status = verification_kinds.initial_status(verification)
    if reason := ctx.terms.screening.unverifiable_name(name):
        verification = verification_kinds.close_verification(verification, "REJECTED", reason)
        status = CounterpartyStatus.UNLINKED
    row = CounterpartyRow(
        customer_id=book.customer_id,
        counterparty_id=counterparty_id,
        type=cmd.type,
        status=status,
        counterparty_name=to_json(cmd.counterparty_name),
        display_name=cmd.display_name,
        account_number=cmd.details.get("account_number") or cmd.details.get("identifier"),
        target_customer_id=cmd.target_customer_id,
        target_pocket_id=cmd.target_pocket_id,
        verification=to_json(verification),
        details=to_json(cmd.details),
        created_at=ctx.now,
        updated_at=ctx.now,
    )
    payee = types.payee_from_row(row)
    keep_counterparty(book, payee, ctx)
    book.draft.add(row)
    book.enter("counterparty", str(counterparty_id), counterparty_id)
    if verification["type"] == "incoming_wire" and status == CounterpartyStatus.PENDING:
        book.schedule(VERIFICATION_EXPIRY, counterparty_id, ctx.now + verification_kinds.WIRE_VERIFICATION_PERIOD)
    if cmd.is_screened:
        schedule_deposits(book, payee, ctx)
    else:
        book.schedule(SCREENING_DUE, counterparty_id, ctx.now)
    return {
        "counterparty_id": str(counterparty_id),
        "counterparties": [notification_of(payee, _STATUS_TEXTS[status], cmd.display_name)],
    }


@decides(UpdateCounterparty)
def update_counterparty(books: Books, cmd: UpdateCounterparty, ctx: Context) -> Outcome:
    """Refuses: counterparty-not-linked."""
    book = book_of(books, cmd.customers[0])
    payee = get_counterparty(book, cmd.counterparty_id)
    if payee.status == CounterpartyStatus.UNLINKED:
        raise Refused("counterparty-not-linked", "The counterparty has been unlinked.")
    if cmd.rename:
        book.change(CounterpartyRow, cmd.counterparty_id, display_name=cmd.display_name, updated_at=ctx.now)
    if cmd.unlink:
        keep_counterparty(book, msgspec.structs.replace(payee, status=CounterpartyStatus.UNLINKED), ctx)
        book.change(CounterpartyRow, cmd.counterparty_id, status=CounterpartyStatus.UNLINKED, updated_at=ctx.now)
        unlinked = [notification_of(payee, _STATUS_TEXTS[CounterpartyStatus.UNLINKED])]
        return {"counterparty_id": str(cmd.counterparty_id), "counterparties": unlinked}
    return {"counterparty_id": str(cmd.counterparty_id)}


def get_counterparty(book: Book, counterparty_id: UUID) -> Payee:
    """Return a counterparty of the book's customer. Raises NotFound."""
    payee: Payee | None = book.counterparties.get(counterparty_id)
    if payee is None:
        raise NotFound("There is no such counterparty.")
    return payee


def keep_counterparty(book: Book, payee: Payee, ctx: Context) -> None:
    """Update a counterparty in the book; `undo` reverts that. A new one and another status raise an event."""
    before: Payee | None = book.counterparties.get(payee.counterparty_id)
    if before is None or before.status != payee.status:
        payload = kinds.CounterpartyPayload(counterparty_id=payee.counterparty_id, status=payee.status)
        kind = kinds.COUNTERPARTY_CREATED if before is None else kinds.COUNTERPARTY_UPDATED
        event(book, ctx, kind, payload)
    book.draft.add(Fingerprint(CounterpartyRow, payee.counterparty_id, payee.proof))
    book.put(book.counterparties, payee.counterparty_id, payee)
    book.put(book.referenced, payee.counterparty_id, payee)


def schedule_deposits(book: Book, payee: Payee, ctx: Context) -> None:
    """Schedule the micro-deposits that a verification waits for."""
    if payee.verification["type"] == "micro_deposits" and payee.status == CounterpartyStatus.PENDING:
        book.schedule(DEPOSITS_DUE, payee.counterparty_id, ctx.now)


def notification_of(payee: Payee, text: str, display_name: str | None = None) -> dict[str, Any]:
    """Return the notification about a counterparty, for the outcome's `counterparties`."""
    called = display_name or payee.name
    named = f"The counterparty {called}" if called else "A counterparty"
    return {"counterparty_id": str(payee.counterparty_id), "said": f"{named} {text}."}


def _check_name(book: Book, cmd: AddCounterparty, ctx: Context) -> dict[str, str] | None:
    """Return the check of a name against the account's owner, None for an account at another bank."""
    if cmd.holder is None:
        return None
    today = ctx.now.date()
    if verification_kinds.failed_name_checks(book.counterparties.values(), today) >= verification_kinds.NAME_CHECKS_MAX:
        raise Refused(
            "name-checks-exhausted",
            f"{verification_kinds.NAME_CHECKS_MAX} names given today did not match the accounts' owners.",
        )
    return verification_kinds.check_name(cmd.counterparty_name, cmd.holder, today)


def _verification(
    book: Book, cmd: AddCounterparty, ctx: Context, name: str, check: Mapping[str, str] | None
) -> dict[str, Any]:
    """Return the requested verification, or the one that makes it unnecessary."""
    verification_id = str(ctx.ids.next())
    outcome = NameMatch.NO_MATCH if check is None else check["outcome"]
    if outcome == NameMatch.MATCH or (cmd.type == "on_us" and (outcome != NameMatch.NO_MATCH or not cmd.document_ids)):
        return verification_kinds.checked_verification(verification_id, check or {"outcome": outcome})
    if cmd.verification in {"incoming_wire", "micro_deposits", "supporting_documents"} and (
        _is_proven(book, cmd.details, name)
    ):
        return verification_kinds.new_verification("pre_verified", verification_id)
    if cmd.verification == "micro_deposits":
        return verification_kinds.new_verification(
            "micro_deposits", verification_id, deposits=_deposits(ctx), failures=0
        )
    if cmd.linked is not None:
        return verification_kinds.linked_verification(verification_id, cmd.linked)
    return verification_kinds.new_verification(
        cmd.verification or "unverified", verification_id, document_ids=map(str, cmd.document_ids)
    )


def _is_proven(book: Book, details: dict[str, Any], name: str) -> bool:
    """Return whether the customer already has a verified counterparty with this account and name."""
    account = verification_kinds.account_of(details)
    return account is not None and any(
        payee.status == CounterpartyStatus.VERIFIED
        and (other := verification_kinds.account_of(payee.details)) is not None
        and verification_kinds.accounts_match(account, other)
        and match_names(name, payee.name) == NameMatch.MATCH
        for payee in book.counterparties.values()
    )


def _deposits(ctx: Context) -> list[int]:
    """Return two different, unpredictable amounts in cents."""
    if get_counterparty := ctx.terms.screening.deposit_amounts():
        return list(get_counterparty)
    first = ctx.ids.next().int % _DEPOSIT_MOST
    second = (first + 1 + ctx.ids.next().int % (_DEPOSIT_MOST - 1)) % _DEPOSIT_MOST
    return [1 + first, 1 + second]
