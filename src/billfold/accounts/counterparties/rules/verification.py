"""Decisions on verifications of counterparties (contract 2.3)."""

from typing import Any
from uuid import UUID

import msgspec

from billfold.accounts.counterparties.commands import (
    ConfirmDeposits,
    CorrectAccount,
    DecideVerification,
    ExpireVerification,
    FailVerification,
    SettleLink,
    SettleScreening,
)
from billfold.accounts.counterparties.names import NameMatch, match_names
from billfold.accounts.counterparties.rules import manage, verification_kinds
from billfold.accounts.counterparties.rules.verification_kinds import Account
from billfold.accounts.counterparties.types import CounterpartyRow, CounterpartyStatus, Payee, SanctionsStatus
from billfold.documents.ports import DocumentRow
from billfold.ledger.book.book import Book
from billfold.ledger.book.draft import to_json
from billfold.ledger.commands import Books, Outcome, book_of, decides
from billfold.ledger.context import Context
from billfold.platform.errors import Refused


@decides(ConfirmDeposits)
def confirm_deposits(books: Books, cmd: ConfirmDeposits, ctx: Context) -> Outcome:
    """VERIFIED if the amounts are right; UNLINKED after three wrong attempts.

    The outcome states whether they were `confirmed` and how many attempts are `left`. Refuses:
    micro-deposits-not-pending, micro-deposits-not-sent.
    """
    book = book_of(books, cmd.customers[0])
    payee = manage.get_counterparty(book, cmd.counterparty_id)
    verification = payee.verification
    if verification["type"] != "micro_deposits" or payee.status != CounterpartyStatus.PENDING:
        raise Refused("micro-deposits-not-pending", "No deposits wait to be confirmed.")
    if not cmd.are_sent:
        raise Refused("micro-deposits-not-sent", "The deposits leave with the next ACH file. Confirm them after that.")
    if sorted(cmd.amounts) == sorted(verification["deposits"]):
        return _end_verification(book, ctx, payee, status="APPROVED", text="The deposits were confirmed.") | {
            "confirmed": True,
            "left": 0,
        }
    failures = verification["failures"] + 1
    left = verification_kinds.CONFIRMATION_ATTEMPTS_MAX - failures
    counted = msgspec.structs.replace(payee, verification={**verification, "failures": failures})
    if left > 0:
        _save_counterparty(book, ctx, counted)
        return _outcome(payee) | {"confirmed": False, "left": left}
    rejected = _end_verification(book, ctx, counted, status="REJECTED", text="Other amounts were named three times.")
    return rejected | {"confirmed": False, "left": 0}


@decides(DecideVerification)
def decide_verification(books: Books, cmd: DecideVerification, ctx: Context) -> Outcome:
    """VERIFIED or UNLINKED for good. Refuses: counterparty-not-pending, document-not-in-review."""
    book = book_of(books, cmd.customers[0])
    payee = manage.get_counterparty(book, cmd.counterparty_id)
    if payee.status != CounterpartyStatus.PENDING:
        raise Refused("counterparty-not-pending", f"The counterparty is {payee.status}.")
    if cmd.approved:
        _require_documents(book, payee)
    text = cmd.reason or ("It was reviewed and approved." if cmd.approved else "It was rejected.")
    outcome = _end_verification(book, ctx, payee, status="APPROVED" if cmd.approved else "REJECTED", text=text)
    status, exception_reason = ("APPROVED", None) if cmd.approved else ("INVALID", text)
    for document_id in payee.verification["document_ids"]:
        book.change(DocumentRow, UUID(document_id), status=status, exception_reason=exception_reason)
    return outcome


@decides(FailVerification)
def fail_verification(books: Books, cmd: FailVerification, ctx: Context) -> Outcome:
    """Reject a pending verification; a decided one is not changed."""
    return _close_pending(books, cmd, ctx, status="REJECTED", text=cmd.reason)


@decides(ExpireVerification)
def expire_verification(books: Books, cmd: ExpireVerification, ctx: Context) -> Outcome:
    """Expire a pending verification; a decided one is not changed."""
    return _close_pending(books, cmd, ctx, status="EXPIRED", text="No wire came from the account in time.")


@decides(SettleLink)
def settle_link(books: Books, cmd: SettleLink, ctx: Context) -> Outcome:
    """VERIFIED or UNLINKED once the provider has finished; a decided verification is not changed.

    An account without its numbers keeps waiting, whatever the provider's status: it could not be paid.
    """
    book = book_of(books, cmd.customers[0])
    payee = manage.get_counterparty(book, cmd.counterparty_id)
    if payee.status != CounterpartyStatus.PENDING or payee.verification["type"] != "linking_provider":
        return _outcome(payee)
    account = {**payee.verification["account"], "status": cmd.link_status}
    details = {**payee.details, **(cmd.numbers or {})}
    known = msgspec.structs.replace(payee, details=details, verification={**payee.verification, "account": account})
    if cmd.numbers:
        _save_details(book, ctx, known)
    status = verification_kinds.PROVIDER_STATUSES[cmd.link_status]
    if status == "PENDING_REVIEW" or (status == "APPROVED" and verification_kinds.account_of(details) is None):
        _save_counterparty(book, ctx, known)
        return _outcome(payee)
    return _end_verification(book, ctx, known, status=status, text=f"The account's bank says: {cmd.link_status}.")


@decides(SettleScreening)
def settle_screening(books: Books, cmd: SettleScreening, ctx: Context) -> Outcome:
    """Store the screening result of the names; a CONFIRMED counterparty is UNLINKED permanently."""
    book = book_of(books, cmd.customers[0])
    payee = manage.get_counterparty(book, cmd.counterparty_id)
    before = payee.sanctions
    if before in {cmd.sanctions, SanctionsStatus.CONFIRMED}:
        return _outcome(payee)
    screened = msgspec.structs.replace(payee, verification={**payee.verification, "sanctions": cmd.sanctions})
    if cmd.sanctions == SanctionsStatus.CONFIRMED:
        return _end_verification(book, ctx, screened, status="REJECTED", text=verification_kinds.SANCTION_SCREEN_FAILED)
    _save_counterparty(book, ctx, screened)
    if cmd.sanctions == SanctionsStatus.OPEN:
        return _outcome(payee, manage.notification_of(payee, "is reviewed by the bank and cannot be paid until then"))
    manage.schedule_deposits(book, screened, ctx)
    was_reviewed = before == SanctionsStatus.OPEN
    return _outcome(payee, *([manage.notification_of(payee, "was reviewed and can be used")] if was_reviewed else ()))


@decides(CorrectAccount)
def correct_account(books: Books, cmd: CorrectAccount, ctx: Context) -> Outcome:
    """Replace the old numbers with the corrected ones; the verification stays."""
    book = book_of(books, cmd.customers[0])
    payee = manage.get_counterparty(book, cmd.counterparty_id)
    details = {**payee.details, **cmd.details}
    if payee.type != "ach" or details == payee.details:
        return _outcome(payee)
    _save_details(book, ctx, msgspec.structs.replace(payee, details=details))
    return _outcome(payee, manage.notification_of(payee, "was corrected by its bank"))


def verify_by_wire(book: Book, ctx: Context, sender: Account, name: str) -> tuple[UUID | None, list[Any]]:
    """Verify the counterparties that wait for a wire from this account, if the sender's name is theirs.

    One with another name stays in review. Returns the sender's counterparty, if known, and the notifications.
    """
    found: UUID | None = None
    moves: list[Any] = []
    for payee in list(book.counterparties.values()):
        account = verification_kinds.account_of(payee.details)
        if payee.status == CounterpartyStatus.UNLINKED or account is None:
            continue
        if not verification_kinds.accounts_match(account, sender):
            continue
        found = found or payee.counterparty_id
        if payee.status == CounterpartyStatus.PENDING and payee.verification["type"] == "incoming_wire":
            if match_names(payee.name, name) == NameMatch.NO_MATCH:
                told = {**payee.verification, "description": verification_kinds.OTHER_SENDER}
                _save_counterparty(book, ctx, msgspec.structs.replace(payee, verification=told))
                continue
            outcome = _end_verification(book, ctx, payee, status="APPROVED", text="A wire came from the account.")
            moves += outcome["counterparties"]
    return found, moves


def _close_pending(
    books: Books, cmd: FailVerification | ExpireVerification, ctx: Context, *, status: str, text: str
) -> Outcome:
    """End the verification of a counterparty if it is still pending."""
    book = book_of(books, cmd.customers[0])
    payee = manage.get_counterparty(book, cmd.counterparty_id)
    if payee.status != CounterpartyStatus.PENDING:
        return _outcome(payee)
    return _end_verification(book, ctx, payee, status=status, text=text)


def _end_verification(book: Book, ctx: Context, payee: Payee, *, status: str, text: str) -> Outcome:
    """End a verification; the counterparty is VERIFIED if it is APPROVED, else UNLINKED."""
    approved = status == "APPROVED"
    closed = msgspec.structs.replace(
        payee,
        status=CounterpartyStatus.VERIFIED if approved else CounterpartyStatus.UNLINKED,
        verification=verification_kinds.close_verification(payee.verification, status, text),
    )
    _save_counterparty(book, ctx, closed)
    return _outcome(payee, manage.notification_of(payee, "was verified" if approved else "could not be verified"))


def _save_counterparty(book: Book, ctx: Context, payee: Payee) -> None:
    manage.keep_counterparty(book, payee, ctx)
    book.change(
        CounterpartyRow,
        payee.counterparty_id,
        status=payee.status,
        verification=to_json(payee.verification),
        updated_at=ctx.now,
    )


def _save_details(book: Book, ctx: Context, payee: Payee) -> None:
    manage.keep_counterparty(book, payee, ctx)
    book.change(
        CounterpartyRow,
        payee.counterparty_id,
        details=to_json(payee.details),
        account_number=payee.details.get("account_number") or payee.details.get("identifier"),
        updated_at=ctx.now,
    )


def _require_documents(book: Book, payee: Payee) -> None:
    """Refuse to approve a verification if one of its documents has no valid file."""
    seen = [book.referenced.get(UUID(each)) for each in payee.verification["document_ids"]]
    if any(each is not None and each.status in {"PENDING_UPLOAD", "INVALID"} for each in seen):
        raise Refused("document-not-in-review", "A document of the counterparty has no valid file.")


def _outcome(payee: Payee, *moves: dict[str, Any]) -> Outcome:
    outcome: Outcome = {"counterparty_id": str(payee.counterparty_id)}
    return outcome | {"counterparties": list(moves)} if moves else outcome
