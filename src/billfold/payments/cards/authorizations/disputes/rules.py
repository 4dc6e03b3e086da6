"""Disputes: what is credited provisionally, and how it is taken back. The bank never credits money twice.

The credit comes from the customer's account `disputes`. What the network or the merchant returns repays it first, in
the same journal entry; a lost dispute claws it back from the Pocket, whose shortfall becomes its overdraft. A credit
that is final is written off to `losses`, which a later chargeback repays.

What is disputed or returned is counted per purchase, per authorization and per merchant of the card, because few
refunds name their purchase.
"""

from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any, Final, NamedTuple
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
    AuthorizationRow,
    CardPaymentKind,
    CardPaymentRow,
    CardRecord,
    Merchant,
    Represent,
    authorization_id_of,
)
from billfold.payments.cards.authorizations.disputes.commands import (
    DISPUTE_JOB,
    DOCUMENTS_MAX,
    OPEN,
    AddDisputeDocuments,
    DecideDispute,
    DisputeRow,
    DisputeStatus,
    OpenDispute,
    RefundSeen,
    refund_id_of,
)
from billfold.platform.dates import et_date
from billfold.platform.errors import NotFound, Refused
from billfold.platform.money import format_usd
from billfold.treasury.rules.day_end import roll_business_day
from billfold.treasury.rules.overdraft import claw_back, overdraft_of
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
    document_ids = _documents(book, cmd.document_ids)
    last = et_date(purchase.created_at) + timedelta(days=ctx.terms.dispute_days)
    if ctx.today > last:
        raise Refused("dispute-not-possible", f"It had to be disputed by {last}.")
    left = _disputable(book, purchase)
    amount = left if cmd.amount is None else cmd.amount
    if not 0 < amount <= left:
        some = f"At most {format_usd(left)} can be disputed: what is neither disputed nor returned yet."
        raise Refused("dispute-not-possible", some if left > 0 else "All of it is disputed or returned already.")
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
        document_ids=document_ids,
        credit_due_at=ctx.calendars.opens_at(ctx.calendars.add_fed_days(ctx.today, CREDIT_DAYS)),
        decide_by=ctx.now + timedelta(days=DECIDE_DAYS),
        created_at=ctx.now,
        updated_at=ctx.now,
    )
    book.draft.add(row)
    book.enter("card_dispute", str(row.dispute_id), row.dispute_id)
    book.schedule(DISPUTE_JOB, row.dispute_id, row.credit_due_at)
    return _keep(book, row, ctx)


@decides(AddDisputeDocuments)
def add_dispute_documents(books: Books, cmd: AddDisputeDocuments, ctx: Context) -> Outcome:
    """Add documents to a dispute that is not decided. Refuses: dispute-not-possible. NotFound for those of others."""
    book = book_of(books, cmd.customers[0])
    row = _dispute(book, cmd.dispute_id)
    document_ids = _documents(book, cmd.document_ids, known=row.evidence_ids)
    if row.status not in OPEN:
        raise Refused("dispute-not-possible", f"The dispute is {row.status}.")
    is_new = document_ids != row.document_ids
    return _change(book, row, ctx, document_ids=document_ids) if is_new else _outcome(row)


@decides(DecideDispute)
def decide_dispute(books: Books, cmd: DecideDispute, ctx: Context) -> Outcome:
    """Move a dispute on: credit it from the bank's account, or take that back, as its new status requires.

    What is due when a time has come is decided here: a credit up to the bank's maximum, and at the end of the
    investigation a credit becomes final. Refuses: dispute-not-possible, pocket-not-open for a credit.
    """
    book = book_of(books, cmd.customers[0])
    row = _dispute(book, cmd.dispute_id)
    pocket = pocket_of(book, row.pocket_id)
    status = cmd.status or _due_status(book, row, pocket, ctx)
    if status is None:
        return _outcome(row)
    if status not in _MOVES.get(row.status, ()):
        raise Refused("dispute-not-possible", f"The dispute is {row.status}.")
    if status not in _CREDITS:
        return _end(book, pocket, row, ctx, status=status)
    is_due, is_final = cmd.status is None, status == DisputeStatus.WON
    credit = 0 if is_due and is_final else row.amount - row.recovered - row.advanced
    advanced = row.advanced + credit
    if credit:
        require_not_closed(pocket)
    _begin(book, pocket, ctx)
    if credit:
        _credit(book, pocket, row, ctx, cents=credit)
    if is_final:
        book.post(book.internal_account(AccountKind.LOSSES), book.internal_account(AccountKind.DISPUTES), advanced)
        book.close()
        return _change(book, row, ctx, status=status, advanced=0, written_off=advanced)
    book.close()
    return _change(book, row, ctx, status=status, advanced=advanced)


def repay_credits(
    book: Book, pocket: PocketBook, cmd: CardRecord, ctx: Context, *, merchant: str, original_id: UUID | None
) -> int:
    """Repay credits from money that has just arrived for their purchase, in the open journal entry; return the cents.

    A chargeback names the purchase; it alone repays what is written off.
    """
    if original_id is None:
        rows, left = _refunded(book, cmd, msgspec.json.decode(merchant, type=Merchant).name, ctx)
    else:
        rows, left = [each for each in _disputes(book, cmd.card_id) if each.record_id == original_id], cmd.amount
    repaid = 0
    for row in rows:
        part = min(left, row.amount - row.recovered)
        is_final = original_id is not None and bool(row.written_off)
        if not part or not (row.status in OPEN or is_final):
            continue
        cents = min(part, row.written_off or row.advanced)
        if cents:
            pocket.inflow += cents
            pocket.outflow += cents
            disputes = book.internal_account(AccountKind.DISPUTES)
            posting_no = book.post(pocket.bank, disputes, cents)
            _record(book, pocket, row, ctx, cents=cents, posting_no=posting_no, direction=Direction.DEBIT)
            if is_final:
                book.post(disputes, book.internal_account(AccountKind.LOSSES), cents)
        changed: dict[str, Any] = {"recovered": row.recovered + part}
        changed |= {"written_off": (row.written_off or 0) - cents} if is_final else {"advanced": row.advanced - cents}
        if original_id is not None:
            changed["charged_back"] = row.charged_back + part
        status = DisputeStatus.WON if row.recovered + part == row.amount else row.status
        _change(book, row, ctx, status=status, **changed)
        left, repaid = left - part, repaid + cents
    return repaid


def lose_represented(book: Book, pocket: PocketBook, cmd: Represent, ctx: Context) -> None:
    """Take what a merchant represents off the disputes of its purchase, after its entry is closed.

    A chargeback that no dispute counted is represented first. A final credit stays with the holder: the bank bears it.
    """
    purchase = book.referenced[cmd.original_id]
    rows = [each for each in _disputes(book, cmd.card_id) if each.record_id == cmd.original_id]
    left = sum(each.charged_back for each in rows) - purchase.disputed
    for row in rows:
        part = min(left, row.charged_back)
        if part <= 0:
            continue
        changed: dict[str, Any] = {"recovered": row.recovered - part, "charged_back": row.charged_back - part}
        if row.written_off is not None:
            _begin(book, pocket, ctx)
            book.post(book.internal_account(AccountKind.LOSSES), book.internal_account(AccountKind.DISPUTES), part)
            _credit(book, pocket, row, ctx, cents=part)
            book.close()
            changed["written_off"] = row.written_off + part
        elif row.status == DisputeStatus.WON and row.recovered == part:
            changed["status"] = DisputeStatus.LOST
        _change(book, row, ctx, **changed)
        left -= part


def _dispute(book: Book, dispute_id: UUID) -> DisputeRow:
    row = book.referenced.get(dispute_id)
    if not isinstance(row, DisputeRow):
        raise NotFound("There is no such dispute.")
    return row


def _documents(book: Book, document_ids: Sequence[UUID], known: Sequence[UUID] = ()) -> str:
    """Return the ids of all documents of a dispute, each once. Refuses: dispute-not-possible for too many."""
    once = dict.fromkeys((*known, *document_ids))
    if any(not isinstance(book.referenced.get(each), DocumentRow) for each in once.keys() - {*known}):
        raise NotFound("There is no such document.")
    if len(once) > DOCUMENTS_MAX:
        raise Refused("dispute-not-possible", f"A dispute has at most {DOCUMENTS_MAX} documents.")
    return " ".join(map(str, once))


def _due_status(book: Book, row: DisputeRow, pocket: PocketBook, ctx: Context) -> DisputeStatus | None:
    """Return what the time requires: a credit, of all to the customer the bank's maximum, or in the end a decision.

    What the books leave in doubt waits for operators, and is looked at again on each business day.
    """
    if row.status not in OPEN:
        return None
    is_opened, is_over, is_clear = row.status == DisputeStatus.OPENED, ctx.now >= row.decide_by, _is_clear(book, row)
    if is_over and (is_opened or is_clear):
        return DisputeStatus.EXPIRED if is_opened else DisputeStatus.WON
    is_due = is_opened and ctx.now >= row.credit_due_at
    at_stake = -sum(each.balance for each in book.house.values() if each.kind == AccountKind.DISPUTES)
    at_stake += sum(overdraft_of(each) for each in book.pockets.values())
    is_small = row.amount - row.recovered + at_stake <= ctx.terms.dispute_credit_max_cents
    may = is_due and is_clear and is_small and pocket.status != PocketStatus.CLOSED
    tomorrow = ctx.calendars.opens_at(ctx.calendars.add_fed_days(ctx.today, 1))
    again = tomorrow if is_over else min(tomorrow, row.decide_by) if is_due and not may else row.decide_by
    book.schedule(DISPUTE_JOB, row.dispute_id, again)
    return DisputeStatus.PROVISIONALLY_CREDITED if may else None


class _Payments(NamedTuple):
    """Purchases by a card, and the refunds and disputes of them."""

    purchases: list[CardPaymentRow]
    refunds: list[RefundSeen]
    disputes: list[DisputeRow]

    @property
    def unexplained(self) -> int:
        """Cents returned that no dispute has counted."""
        returned = sum(each.disputed for each in self.purchases) + sum(each.amount for each in self.refunds)
        return max(returned - sum(each.recovered for each in self.disputes), 0)

    @property
    def left(self) -> int:
        """Cents that are neither disputed nor returned."""
        is_free = DisputeStatus.WITHDRAWN
        disputed = sum(each.recovered if each.status == is_free else each.amount for each in self.disputes)
        return sum(each.amount for each in self.purchases) - disputed - self.unexplained


def _payments(book: Book, card_id: UUID, merchant: str) -> _Payments:
    """Return what a card has paid a merchant, with the refunds by it and those that name one of the purchases."""
    seen = [each for each in book.referenced.values() if isinstance(each, CardPaymentRow | RefundSeen)]
    bought = [each for each in seen if isinstance(each, CardPaymentRow) and each.kind == CardPaymentKind.PURCHASE]
    purchases = [each for each in bought if each.card_id == card_id and _name_of(each) == merchant]
    held = {each.authorization_id for each in purchases} - {None}
    refunds = [each for each in seen if isinstance(each, RefundSeen) and each.card_id == card_id]
    own = [each for each in refunds if each.merchant == merchant or each.authorization_id in held]
    return _Payments(purchases, own, _of_purchases(book, purchases))


def _disputable(book: Book, purchase: CardPaymentRow) -> int:
    """Return the cents of a purchase that are neither disputed nor returned, as far as the books can tell."""
    of_merchant = _payments(book, purchase.card_id, _name_of(purchase))
    left = min(of_merchant.left, _Payments([purchase], [], _of_purchases(book, [purchase])).left)
    if (held := purchase.authorization_id) is None:
        return left
    same = [each for each in of_merchant.purchases if each.authorization_id == held]
    refunds = [each for each in of_merchant.refunds if each.authorization_id == held]
    return min(left, _Payments(same, refunds, _of_purchases(book, same)).left)


def _is_clear(book: Book, row: DisputeRow) -> bool:
    """Tell whether its merchant represented nothing, and each refund since the purchase is of a known one."""
    paid = _payments(book, row.card_id, row.merchant)
    since = min(each.created_at for each in paid.purchases if each.record_id == row.record_id)
    held = {each.authorization_id for each in paid.purchases} - {None}
    is_loose = any(each.authorization_id not in held and each.created_at >= since for each in paid.refunds)
    seen = [each for each in book.referenced.values() if isinstance(each, CardPaymentRow)]
    is_represented = any((each.kind, each.original_id) == ("REPRESENTMENT", row.record_id) for each in seen)
    return not (is_represented or (is_loose and paid.unexplained))


def _refunded(book: Book, cmd: CardRecord, merchant: str, ctx: Context) -> tuple[list[DisputeRow], int]:
    """Return the disputes that a refund may be of, and its cents that are theirs; note the refund.

    Its reference decides if it names a purchase, else its merchant and exact amount; in parts, it is theirs as far as
    no other purchase can explain it.
    """
    reference = cmd.network_reference
    named = None if reference is None else authorization_id_of(cmd.card_id, reference)
    held = book.referenced.get(named) if named else None
    left = _payments(book, cmd.card_id, merchant).left
    seen = RefundSeen(cmd.card_id, cmd.amount, merchant, named, ctx.now)
    book.put(book.referenced, refund_id_of(cmd.record_id), seen)
    rows = [each for each in _disputes(book, cmd.card_id) if each.status in OPEN]
    if isinstance(held, AuthorizationRow) and held.cleared:
        return [each for each in rows if each.authorization_id == named], cmd.amount
    rows = [each for each in rows if each.merchant == merchant]
    equal = [each for each in rows if cmd.amount in {each.amount, each.amount - each.recovered}]
    return (equal[:1], cmd.amount) if equal else (rows, max(cmd.amount - max(left, 0), 0))


def _name_of(purchase: CardPaymentRow) -> str:
    return msgspec.json.decode(purchase.merchant, type=Merchant).name


def _disputes(book: Book, card_id: UUID) -> list[DisputeRow]:
    """Return the disputes of a card, oldest first."""
    found = [each for each in book.referenced.values() if isinstance(each, DisputeRow) and each.card_id == card_id]
    return sorted(found, key=lambda each: (each.created_at, each.dispute_id))


def _of_purchases(book: Book, purchases: Iterable[CardPaymentRow]) -> list[DisputeRow]:
    ids = {each.record_id for each in purchases}
    return [each for each in book.referenced.values() if isinstance(each, DisputeRow) and each.record_id in ids]


def _credit(book: Book, pocket: PocketBook, row: DisputeRow, ctx: Context, *, cents: int) -> None:
    posting_no = book.post(book.internal_account(AccountKind.DISPUTES), pocket.bank, cents)
    sweep_and_invest(book, pocket, ctx, amount=cents)
    _record(book, pocket, row, ctx, cents=cents, posting_no=posting_no, direction=Direction.CREDIT)


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
