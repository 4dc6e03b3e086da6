"""Enrolling and closing customers, and changing their contact details."""

from collections.abc import Iterator

from billfold.accounts.agreements.rules import record_consent
from billfold.accounts.customers.commands import CloseCustomer, EnrolCustomer, SetCustomerState, UpdateCustomer
from billfold.accounts.pockets.rules import charge_last_fee, mark_closed, open_payments
from billfold.events import kinds
from billfold.ledger.book.book import BANK_ROLE, Book
from billfold.ledger.book.draft import to_json
from billfold.ledger.book.recording import event
from billfold.ledger.commands import Books, Outcome, book_of, decides
from billfold.ledger.context import Context
from billfold.ledger.customers import CustomerRow, CustomerStatus, profile_reference, require_active
from billfold.ledger.types import PocketStatus
from billfold.platform.errors import InvalidInput, InvariantError, NotFound, Refused
from billfold.treasury.rules.overdraft import overdraft_of

REASON_CHARS_MAX = 500
CLOSED_JOB = "customer.closed"
"""The scheduled job that ends what a closed customer left open."""


@decides(EnrolCustomer)
def enrol_customer(books: Books, cmd: EnrolCustomer, ctx: Context) -> Outcome:
    """The account is PENDING until its first pocket opens. Consent to an unpublished version is ignored."""
    book = book_of(books, cmd.customers[0])
    book.name, book.partner_id, book.account_status = (cmd.name, cmd.partner_id, CustomerStatus.PENDING)
    book.role = cmd.role
    if cmd.consent and ctx.terms.agreements.is_released(cmd.consent.version, ctx.today):
        record_consent(book, cmd.consent, ctx)
    book.draft.add(
        CustomerRow(
            customer_id=book.customer_id,
            partner_id=cmd.partner_id,
            role=cmd.role,
            type=cmd.type,
            name=cmd.name,
            account_status=book.account_status,
            profile=to_json(cmd.profile or {}),
            opened_at=ctx.now,
            agreement_version=book.agreement_version,
        )
    )
    book.enter("customer", str(book.customer_id), book.customer_id)
    return {"customer_id": str(book.customer_id)}


@decides(UpdateCustomer)
def update_customer(books: Books, cmd: UpdateCustomer, ctx: Context) -> Outcome:
    """Refuses: customer-not-open, customer-changed."""
    del ctx
    book = book_of(books, cmd.customers[0])
    if book.account_status == CustomerStatus.CLOSED:
        raise Refused("customer-not-open", "The customer is CLOSED.")
    book.change(CustomerRow, book.customer_id, profile=_new_profile(book, cmd))
    return {"customer_id": str(book.customer_id)}


def _new_profile(book: Book, cmd: UpdateCustomer | CloseCustomer) -> str:
    """Return the new profile to store; it must be merged with the latest one; the rule cannot merge sealed data."""
    place = profile_reference(book.customer_id)
    if cmd.replaces is not None and cmd.replaces != book.referenced.get(place):
        raise Refused("customer-changed", "Another request has changed the customer. Send this one again.")
    profile = to_json(cmd.profile or {})
    book.put(book.referenced, place, profile)
    return profile


@decides(SetCustomerState)
def set_customer_state(books: Books, cmd: SetCustomerState, ctx: Context) -> Outcome:
    """Freeze or unfreeze the customer; its Pockets are not changed.

    Refuses: customer-not-open once it is closed; to unfreeze, sanctions-hit-open. Raises InvalidInput without a
    one-line reason.
    """
    if not (1 <= len(cmd.reason.strip()) <= REASON_CHARS_MAX and cmd.reason.isprintable()):
        raise InvalidInput.at("body", "reason", msg=f"must be 1 to {REASON_CHARS_MAX} printable characters")
    book = book_of(books, cmd.customers[0])
    before = book.account_status
    if book.role == BANK_ROLE:
        raise NotFound
    if before == CustomerStatus.CLOSED:
        raise Refused("customer-not-open", "The customer is CLOSED.")
    if cmd.status == CustomerStatus.FROZEN:
        after = CustomerStatus.FROZEN
    else:
        _require_cleared(book, cmd)
        after = CustomerStatus.OPEN if book.pockets else CustomerStatus.PENDING
    if after != before:
        _set_status(book, after, ctx)
    return {"customer_id": str(book.customer_id), "before": before, "status": after}


def _set_status(book: Book, status: CustomerStatus, ctx: Context) -> None:
    book.set_account_status(status)
    event(book, ctx, kinds.CUSTOMER_UPDATED, kinds.CustomerPayload(customer_id=book.customer_id, status=status))


def _require_cleared(book: Book, cmd: SetCustomerState) -> None:
    """Refuse to lift a freeze by sanctions screening: the operators who clear its hits do that."""
    if cmd.references != (book.customer_id,):
        raise InvariantError("A customer is unfrozen without checking its hits.", customer_id=str(book.customer_id))
    if book.customer_id in book.referenced:
        raise Refused("sanctions-hit-open", "A name of the customer may be on a sanctions list: clear its hits first.")


@decides(CloseCustomer)
def close_customer(books: Books, cmd: CloseCustomer, ctx: Context) -> Outcome:
    """Close every pocket and the account for good, and schedule the end of what it leaves open.

    Refuses: forbidden for a partner's own account, customer-not-open, pocket-frozen, customer-has-balance with all
    obstacles, and customer-changed.
    """
    book = book_of(books, cmd.customers[0])
    if book.role != "customer":
        raise Refused("forbidden", "A partner's own account is not closed like a customer's.")
    require_active(book.account_status)
    if any(pocket.status == PocketStatus.FROZEN for pocket in book.pockets.values()):
        raise Refused("pocket-frozen", "A pocket is frozen: the customer can be closed once it is unfrozen.")
    for pocket in book.pockets.values():
        charge_last_fee(book, pocket, ctx)
    if obstacles := list(_closing_obstacles(book, ctx)):
        raise Refused("customer-has-balance", " ".join(obstacles))
    for pocket in book.pockets.values():
        if pocket.status != PocketStatus.CLOSED:
            mark_closed(book, pocket, ctx, reason=cmd.reason)
    _set_status(book, CustomerStatus.CLOSED, ctx)
    described = {} if cmd.profile is None else {"profile": _new_profile(book, cmd)}
    book.change(CustomerRow, book.customer_id, closed_at=ctx.now, closure_reason=cmd.reason, **described)
    book.schedule(CLOSED_JOB, book.customer_id, ctx.now)
    return {"customer_id": str(book.customer_id)}


def _closing_obstacles(book: Book, ctx: Context) -> Iterator[str]:
    """Yield what prevents closing the customer: money, debts, and everything in process."""
    held = [pocket.name for pocket in book.pockets.values() if pocket.lots or pocket.cash.balance]
    if held:
        yield f"Every pocket must be empty first; these are not: {', '.join(held)}."
    if any(overdraft_of(p) for p in book.pockets.values()):
        yield "An overdraft must be repaid first."
    settled_through = ctx.calendars.settlement_on_or_before(ctx.today)
    if any(p.settles_after(settled_through) for p in book.pockets.values()):
        yield "Every trade must have settled first."
    if book.pending:
        yield "A transfer is pending."
    if open_payments(book):
        yield "ACH entries or wires are still in process."
