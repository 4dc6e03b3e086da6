"""Disputes: what is credited provisionally, and how it is taken back. The bank never credits money twice.

The credit comes from the customer's account `disputes`. What the network or the merchant returns repays it first, in
the same journal entry; a lost dispute claws it back from the Pocket, whose shortfall becomes its overdraft.
"""

from datetime import timedelta
from typing import Any, Final
from uuid import UUID

import msgspec

from billfold.accounts.pockets.rules import pocket_of, require_not_closed
from billfold.documents.ports import DocumentRow
from billfold.events import kinds
from billfold.events.payloads import CardDisputePayload
from billfold.ledger.book import recording
from billfold.ledger.book.book import Book
from billfold.ledger.book.draft import PocketBook
from billfold.ledger.commands import Books, Outcome, book_of, decides
from billfold.ledger.context import Context
from billfold.ledger.types import AccountKind, Direction, JournalKind, PocketStatus, TransactionType
from billfold.payments.cards.authorizations.commands import (
    CardPaymentKind,
    CardPaymentRow,
    CardRecord,
    Merchant,
    Represent,
    authorization_id_of,
)
from billfold.payments.cards.authorizations.disputes.commands import (
    DISPUTE_JOB,
    OPEN,
    DecideDispute,
    DisputeRow,
    DisputeStatus,
    OpenDispute,
    RefundsSeen,
    refunds_id_of,
)
from billfold.platform.dates import et_date
from billfold.platform.errors import NotFound, Refused
from billfold.treasury.rules.day_end import roll_business_day
from billfold.treasury.rules.overdraft import claw_back
from billfold.treasury.rules.sweep import sweep_and_invest

CREDIT_DAYS: Final = 10
"""Business days until a provisional credit is due (12 CFR 1005.11(c)(2))."""
DECIDE_DAYS: Final = 90
"""Days for the investigation of a payment at a point of sale (12 CFR 1005.11(c)(3))."""
_ENDS: Final = frozenset({DisputeStatus.WON, DisputeStatus.LOST, DisputeStatus.WITHDRAWN})
_MOVES: Final = {
    DisputeStatus.OPENED: _ENDS | {DisputeStatus.PROVISIONALLY_CREDITED, DisputeStatus.EXPIRED},
    DisputeStatus.PROVISIONALLY_CREDITED: _ENDS,
}
_CREDITS: Final = frozenset({DisputeStatus.PROVISIONALLY_CREDITED, DisputeStatus.WON})
PROVISIONAL_CREDIT: Final = "PROVISIONAL_CREDIT"
"""The cause in the details of its transactions."""


@decides(OpenDispute)
def open_dispute(books: Books, cmd: OpenDispute, ctx: Context) -> Outcome:
    """Open a dispute. All disputes, chargebacks and refunds of a purchase are together at most its amount.

    Refuses: dispute-not-possible. NotFound for a purchase or a document of another customer.
    """
    book = book_of(books, cmd.customers[0])
    purchase = book.referenced.get(cmd.record_id)
    if not isinstance(purchase, CardPaymentRow) or purchase.kind != CardPaymentKind.PURCHASE:
        raise NotFound("There is no such card payment.")
    if any(not isinstance(book.referenced.get(each), DocumentRow) for each in cmd.document_ids):
        raise NotFound("There is no such document.")
    last = et_date(purchase.created_at) + timedelta(days=ctx.terms.dispute_days)
    if ctx.today > last:
        raise Refused("dispute-not-possible", f"It had to be disputed by {last}.")
    left = _disputable(book, purchase, cmd.amount)
    amount = left if cmd.amount is None else cmd.amount
    if not 0 < amount <= left:
        raise Refused("dispute-not-possible", f"{max(left, 0)} cents of it are neither disputed nor returned yet.")
    row = DisputeRow(
        customer_id=book.customer_id,
        dispute_id=cmd.dispute_id,
        record_id=purchase.record_id,
        authorization_id=purchase.authorization_id,
        card_id=purchase.card_id,
        pocket_id=purchase.pocket_id,
        merchant=msgspec.json.decode(purchase.merchant, type=Merchant).name,
        amount=amount,
        reason=cmd.reason,
        status=DisputeStatus.OPENED,
        document_ids=" ".join(map(str, cmd.document_ids)),
        credit_due_at=ctx.calendars.opens_at(ctx.calendars.add_fed_days(ctx.today, CREDIT_DAYS)),
        decide_by=ctx.now + timedelta(days=DECIDE_DAYS),
        created_at=ctx.now,
        updated_at=ctx.now,
    )
    book.draft.add(row)
    book.enter("card_dispute", str(row.dispute_id), row.dispute_id)
    book.schedule(DISPUTE_JOB, row.dispute_id, row.credit_due_at)
    return _keep(book, row, ctx)


@decides(DecideDispute)
def decide_dispute(books: Books, cmd: DecideDispute, ctx: Context) -> Outcome:
    """Move a dispute on: credit it from the bank's account, or take that back, as its new status requires.

    What is due when a time has come is decided here: a credit up to the bank's maximum, and at the end of the
    investigation a credit becomes final. Refuses: dispute-not-possible, pocket-not-open for a credit.
    """
    book = book_of(books, cmd.customers[0])
    row = book.referenced.get(cmd.dispute_id)
    if not isinstance(row, DisputeRow):
        raise NotFound("There is no such dispute.")
    pocket = pocket_of(book, row.pocket_id)
    status = cmd.status or _due_status(book, row, pocket, ctx)
    if status is None:
        return _outcome(row)
    if status not in _MOVES.get(row.status, ()):
        raise Refused("dispute-not-possible", f"The dispute is {row.status}.")
    if status not in _CREDITS:
        return _end(book, pocket, row, ctx, status=status)
    credit = row.amount - row.recovered - row.advanced
    if credit:
        require_not_closed(pocket)
        _begin(book, pocket, ctx)
        posting_no = book.post(book.internal_account(AccountKind.DISPUTES), pocket.bank, credit)
        sweep_and_invest(book, pocket, ctx, amount=credit)
        _record(book, pocket, row, ctx, cents=credit, posting_no=posting_no, direction=Direction.CREDIT)
        book.close()
    return _change(book, row, ctx, status=status, advanced=row.advanced + credit)


def repay_credits(
    book: Book, pocket: PocketBook, cmd: CardRecord, ctx: Context, *, merchant: str, original_id: UUID | None
) -> int:
    """Repay provisional credits from money that has just arrived for their purchase, in the open journal entry.

    Return the cents. A chargeback names the purchase, a refund has its reference, or none and its merchant and amount.
    """
    left, repaid = cmd.amount, 0
    for row in _disputes(book, cmd.card_id):
        is_own = row.record_id == original_id if original_id else _is_refunded(row, cmd, merchant)
        part = min(left, row.amount - row.recovered)
        if not (is_own and part and (row.status in OPEN or row.advanced)):
            continue
        cents = min(part, row.advanced)
        if cents:
            pocket.inflow += cents
            pocket.outflow += cents
            posting_no = book.post(pocket.bank, book.internal_account(AccountKind.DISPUTES), cents)
            _record(book, pocket, row, ctx, cents=cents, posting_no=posting_no, direction=Direction.DEBIT)
        recovered = row.recovered + part
        status = DisputeStatus.WON if recovered == row.amount else row.status
        _change(book, row, ctx, status=status, advanced=row.advanced - cents, recovered=recovered)
        left, repaid = left - part, repaid + cents
    return repaid


def lose_represented(book: Book, pocket: PocketBook, cmd: Represent, ctx: Context) -> None:
    """Record that the disputes of a purchase that its merchant represents are lost, after its entry is closed."""
    left = cmd.amount
    for row in _disputes(book, cmd.card_id):
        part = min(left, row.recovered)
        if row.record_id == cmd.original_id and part:
            _end(book, pocket, row, ctx, status=DisputeStatus.LOST, recovered=row.recovered - part)
            left -= part


def _due_status(book: Book, row: DisputeRow, pocket: PocketBook, ctx: Context) -> DisputeStatus | None:
    """Return what the time requires: a credit, of all to the customer the bank's maximum, or in the end a decision."""
    if row.status not in OPEN:
        return None
    if ctx.now >= row.decide_by:
        return DisputeStatus.EXPIRED if row.status == DisputeStatus.OPENED else DisputeStatus.WON
    book.schedule(DISPUTE_JOB, row.dispute_id, row.decide_by)
    is_due = row.status == DisputeStatus.OPENED and ctx.now >= row.credit_due_at
    advanced = -sum(each.balance for each in book.house.values() if each.kind == AccountKind.DISPUTES)
    is_small = row.amount - row.recovered + advanced <= ctx.terms.dispute_credit_max_cents
    may = is_due and is_small and pocket.status != PocketStatus.CLOSED
    return DisputeStatus.PROVISIONALLY_CREDITED if may else None


def _disputable(book: Book, purchase: CardPaymentRow, requested: int | None) -> int:
    """Return the cents of a purchase that are neither disputed nor returned."""
    known = [each for each in _disputes(book, purchase.card_id) if each.record_id == purchase.record_id]
    disputed = sum(each.recovered if each.status == DisputeStatus.WITHDRAWN else each.amount for each in known)
    returned = purchase.disputed
    seen = book.referenced.get(refunds_id_of(purchase.record_id))
    if isinstance(seen, RefundsSeen):
        alike = {purchase.amount, requested, *(each.amount for each in known)}
        returned += seen.by_reference + sum(each for each in seen.unreferenced if each in alike)
    return purchase.amount - disputed - max(returned - sum(each.recovered for each in known), 0)


def _is_refunded(row: DisputeRow, cmd: CardRecord, merchant: str) -> bool:
    if cmd.network_reference is not None:
        return row.authorization_id == authorization_id_of(cmd.card_id, cmd.network_reference)
    return row.merchant == msgspec.json.decode(merchant, type=Merchant).name and row.amount == cmd.amount


def _disputes(book: Book, card_id: UUID) -> list[DisputeRow]:
    """Return the disputes of a card, oldest first."""
    found = [each for each in book.referenced.values() if isinstance(each, DisputeRow) and each.card_id == card_id]
    return sorted(found, key=lambda each: (each.created_at, each.dispute_id))


def _end(book: Book, pocket: PocketBook, row: DisputeRow, ctx: Context, **changed: Any) -> Outcome:
    """End a dispute, and take back what is credited; the shortfall becomes the overdraft of the pocket."""
    if row.advanced:
        _begin(book, pocket, ctx)
        to = book.internal_account(AccountKind.DISPUTES)
        posting_no = claw_back(book, pocket, ctx, row.advanced, to=to, terms=ctx.same_day)
        _record(book, pocket, row, ctx, cents=row.advanced, posting_no=posting_no, direction=Direction.DEBIT)
        book.close()
    return _change(book, row, ctx, advanced=0, **changed)


def _begin(book: Book, pocket: PocketBook, ctx: Context) -> None:
    roll_business_day(book, pocket, ctx)
    book.begin(JournalKind.CARD, ctx, settles_on=ctx.business_date)


def _record(
    book: Book, pocket: PocketBook, row: DisputeRow, ctx: Context, *, cents: int, posting_no: int, direction: Direction
) -> None:
    recording.transaction(
        book,
        pocket,
        posting_no=posting_no,
        group=ctx.ids.next_group(),
        type=TransactionType.GENERIC,
        direction=direction,
        amount=cents,
        title="Provisional credit" if direction == Direction.CREDIT else "Provisional credit reversed",
        description=f"Dispute of the payment to {row.merchant}",
        settles_at=book.booked_at,
        details={"cause": PROVISIONAL_CREDIT, "dispute_id": str(row.dispute_id)},
    )


def _change(book: Book, row: DisputeRow, ctx: Context, **changed: Any) -> Outcome:
    changed["updated_at"] = ctx.now
    book.change(DisputeRow, row.dispute_id, **changed)
    return _keep(book, msgspec.structs.replace(row, **changed), ctx)


def _keep(book: Book, row: DisputeRow, ctx: Context) -> Outcome:
    book.put(book.referenced, row.dispute_id, row)
    book.keep_fingerprint(row)
    payload = CardDisputePayload(dispute_id=row.dispute_id, card_id=row.card_id, amount=row.amount, status=row.status)
    recording.event(book, ctx, kinds.CARD_DISPUTE_UPDATED, payload)
    return _outcome(row)


def _outcome(row: DisputeRow) -> Outcome:
    return {"dispute_id": str(row.dispute_id), "status": row.status, "amount": row.amount}
