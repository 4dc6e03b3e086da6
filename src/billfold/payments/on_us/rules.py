"""On-us transfers: money or bills move between pockets of the bank.

Between customers the payer's journal entry credits `on_us` and the payee's debits it, in one
commit. Within one customer `BANK_TRANSFER` sells and buys at T+1 prices, and `SECURITY_TRANSFER`
moves lots with acquisition date and tax basis unchanged.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from billfold.accounts.agreements.rules import require_accepted
from billfold.accounts.counterparties.rules.verification_kinds import SANCTION_SCREEN_FAILED, check_sanctions
from billfold.accounts.counterparties.types import Payee
from billfold.accounts.holds.rules import capture_hold
from billfold.accounts.pockets.rules import pocket_of, require_open
from billfold.bills.rules import fees, lots
from billfold.bills.rules.lots import Sale
from billfold.events import kinds
from billfold.ledger.book import recording
from billfold.ledger.book.book import Book
from billfold.ledger.book.draft import Lot, PocketBook, to_json
from billfold.ledger.commands import Books, Outcome, book_of, decides
from billfold.ledger.context import Context, SaleTerms
from billfold.ledger.types import NOT_CLOSED, AccountKind, Direction, JournalKind, TradeActivity, TransactionType
from billfold.payments.on_us.commands import OnUsTransferRow, PendingTransfer, TransferOnUs, TransferStatus
from billfold.payments.on_us.reversals.rules import accept_request, require_reversal
from billfold.platform.dates import et_instant, iso_z
from billfold.platform.errors import NotFound, Refused
from billfold.platform.ids import member_of
from billfold.platform.money import cents_for
from billfold.treasury.rules.day_end import roll_business_day
from billfold.treasury.rules.liquidate import liquidation_value
from billfold.treasury.rules.overdraft import overdraft_of, recover_overdraft_by_selling
from billfold.treasury.rules.sweep import sweep_and_invest
from billfold.treasury.rules.withdraw import (
    NOTHING_TO_MOVE,
    InsufficientFunds,
    Withdrawn,
    payable_cents,
    require_at_most,
    require_something,
    withdraw,
)

_KINDS = {
    TransferStatus.PENDING: kinds.ON_US_PROCESSING,
    TransferStatus.REJECTED: kinds.ON_US_REJECTED,
    TransferStatus.COMPLETED: kinds.ON_US_SUCCESS,
}


class _Rejected(Exception):
    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class _Transfer(NamedTuple):
    """A transfer to execute, with the book and the pocket of either side."""

    cmd: TransferOnUs
    ctx: Context
    transfer_id: UUID
    payer: Book
    origin: PocketBook
    payee: Book
    destination: PocketBook

    @property
    def is_internal(self) -> bool:
        """True if both pockets belong to one customer."""
        return self.payer is self.payee


@decides(TransferOnUs)
def transfer_on_us(books: Books, cmd: TransferOnUs, ctx: Context) -> Outcome:
    """Execute the transfer, or record why it is rejected. A rejected transfer posts nothing.

    Refuses: customer-not-open, agreement-not-accepted between customers, pocket-not-open, pocket-frozen,
    sanction-screen-failed, counterparty-not-verified, same-pocket, as `require_reversal`. NotFound: others' pockets.
    """
    payer = book_of(books, cmd.customers[0])
    payee = book_of(books, cmd.customers[-1])
    origin = pocket_of(payer, cmd.from_pocket_id)
    if cmd.to_pocket_id == cmd.from_pocket_id:
        raise Refused("same-pocket", "A transfer needs two different pockets.")
    transfer_id = cmd.transfer_id or ctx.ids.next()
    amount, status, reason = cmd.amount or 0, TransferStatus.PENDING, None
    if cmd.later and not cmd.accepted:
        _require_may_pay(payer, origin, payee, ctx=ctx)
        return _record_transfer(payer, cmd, ctx, transfer_id=transfer_id, status=status, reason=reason, amount=amount)
    try:
        destination = _require_movable(payer, origin, payee, cmd=cmd, ctx=ctx)
        transfer = _Transfer(cmd, ctx, transfer_id, payer=payer, origin=origin, payee=payee, destination=destination)
        with _invalid_if(was_accepted=cmd.accepted or cmd.approved):
            capture_hold(payer, origin, ctx, hold_id=cmd.hold_id, amount=cmd.amount)
            request = require_reversal(payer, payee, cmd, ctx) if cmd.order.reverses else None
        amount = _move_bills(transfer) if cmd.order.in_kind else _move_money(transfer)
        with _invalid_if(was_accepted=cmd.approved):
            require_at_most(cmd.at_most, amount)
        accept_request(payer, payee, request, ctx, transfer_id)
        status = TransferStatus.COMPLETED
    except _Rejected as rejected:
        payer.undo()
        payee.undo()
        status, reason = TransferStatus.REJECTED, rejected.reason
    return _record_transfer(payer, cmd, ctx, transfer_id=transfer_id, status=status, reason=reason, amount=amount)


def _require_movable(payer: Book, origin: PocketBook, payee: Book, *, cmd: TransferOnUs, ctx: Context) -> PocketBook:
    """Return the destination if both pockets may be used; else refuse, or reject a transfer accepted before."""
    try:
        _require_may_pay(payer, origin, payee, ctx=ctx)
        if cmd.order.counterparty_id:
            _require_linked(payer, cmd)
        destination = _destination(payee, cmd, payer)
    except Refused as refusal:
        if not (cmd.accepted or cmd.approved):
            raise
        is_sanctioned = refusal.code == "sanction-screen-failed"
        raise _Rejected(SANCTION_SCREEN_FAILED if is_sanctioned else "ACCOUNT_UNAVAILABLE") from None
    return destination


def _require_may_pay(payer: Book, origin: PocketBook, payee: Book, *, ctx: Context) -> None:
    require_open(payer, origin)
    if payee is not payer:
        require_accepted(payer, ctx)


@contextmanager
def _invalid_if(*, was_accepted: bool) -> Iterator[None]:
    """Reject a transfer that was accepted before; else refuse."""
    try:
        yield
    except (Refused, NotFound):
        if not was_accepted:
            raise
        raise _Rejected("INVALID_TRANSFER") from None


def _require_linked(payer: Book, cmd: TransferOnUs) -> None:
    """Refuse a counterparty that is stopped by screening, or was unlinked or changed in the meantime."""
    named = cmd.order.counterparty_id
    seen: Payee | None = payer.referenced.get(named) if named else None
    if seen is not None:
        check_sanctions(seen)
    linked = None if seen is None or seen.status not in {"LINKED", "VERIFIED"} else seen
    if linked is None or linked.target_pocket_id != cmd.to_pocket_id:
        raise Refused("counterparty-not-verified", "The counterparty is no longer linked.")


def _destination(payee: Book, cmd: TransferOnUs, payer: Book) -> PocketBook:
    destination = payee.pockets.get(cmd.to_pocket_id) if cmd.to_pocket_id else None
    if destination is None:
        raise NotFound
    if cmd.order.counterparty_id is not None and cmd.addresses[1] is None:
        raise _Rejected("ACCOUNT_UNAVAILABLE")
    if destination.status not in NOT_CLOSED:
        if payee is payer:
            raise Refused("pocket-not-open", f"The receiving pocket is {destination.status}.")
        raise _Rejected("ACCOUNT_UNAVAILABLE")
    return destination


def _move_money(transfer: _Transfer) -> int:
    """Pay from one pocket to the other; return the cents moved."""
    _, ctx, _, payer, origin, payee, destination = transfer
    roll_business_day(payer, origin, ctx)
    if transfer.is_internal:
        roll_business_day(payee, destination, ctx)
    group = ctx.ids.next_group()
    (amount, _, unsettled), settles_at = _pay(transfer, group)
    if not transfer.is_internal:
        payer.close()
        roll_business_day(payee, destination, ctx)
        payee.begin(JournalKind.ON_US, ctx, settles_on=ctx.settles_on)
    posting_no = payee.post(payee.internal_account(AccountKind.ON_US), destination.bank, amount)
    sweep_and_invest(payee, destination, ctx, amount=amount, unsettled=unsettled)
    _record_transaction(transfer, Direction.CREDIT, group, posting_no=posting_no, amount=amount, settles_at=settles_at)
    payee.close()
    if not transfer.is_internal:
        payload = kinds.OnUsReceivedPayload(
            on_us_id=transfer.transfer_id,
            transaction_activity_id=member_of(group, 2),
            receiving_pocket_id=destination.pocket_id,
        )
        recording.event(payee, ctx, kinds.ON_US_RECEIVED, payload=payload)
    return amount


def _pay(transfer: _Transfer, group: UUID) -> tuple[Withdrawn, datetime]:
    """Post the debit of the payer in an entry that stays open; return the amount paid and its settlement time."""
    _, ctx, _, payer, origin, _, destination = transfer
    internal = transfer.is_internal
    terms = reallocation_terms(ctx, destination) if internal else ctx.same_day
    payer.begin(JournalKind.ON_US, ctx, settles_on=terms.settles_on)
    try:
        amount, to = _amount_of(transfer, terms), payer.internal_account(AccountKind.ON_US)
        paid = withdraw(payer, origin, ctx, amount=amount, terms=terms, to=to)
    except InsufficientFunds:
        raise _Rejected("INSUFFICIENT_FUNDS") from None
    settles_at = et_instant(terms.settles_on, 0) if internal else payer.booked_at
    _record_transaction(
        transfer, Direction.DEBIT, group, posting_no=paid.posting_no, amount=paid.amount, settles_at=settles_at
    )
    return paid, settles_at


def _amount_of(transfer: _Transfer, terms: SaleTerms) -> int | None:
    """Return the cents to pay, by what both pockets hold now; None: everything."""
    cmd, ctx, _, _, origin, _, destination = transfer
    if cmd.top_up_to is not None:
        found = cmd.top_up_to - payable_cents(destination, ctx)
    elif cmd.keep is not None:
        found = payable_cents(origin, ctx, terms) - cmd.keep
    else:
        return cmd.amount
    if found <= 0 and cmd.approved:
        raise _Rejected(NOTHING_TO_MOVE)
    return require_something(found, at_most=cmd.at_most)


def reallocation_terms(ctx: Context, destination: PocketBook) -> SaleTerms:
    """Return the terms for selling bills for another pocket of the same customer.

    The sale is for the next day, when the new bills settle. A transfer must not increase what can be paid out today: if
    the new bill loses less than the old one in a same-day sale, the old one sells for that much less. Money that repays
    an overdraft is used today.
    """
    if overdraft_of(destination):
        return ctx.same_day
    offer = ctx.find_offer(destination.deposit_weeks) if ctx.investing else None
    if offer is None:
        return ctx.next_day
    bill, ask = offer
    bid = ctx.t0_bid(bill.cusip)
    return ctx.next_day._replace(price_of=lambda cusip: min(ctx.t1_bid(cusip), ctx.t0_bid(cusip) * ask // bid))


def _move_bills(transfer: _Transfer) -> int:
    """Move whole bills worth at least the amount at the mark, shortest maturity first, except matured ones.

    Returns the value moved in cents. Cash is not moved. Lots keep acquisition date and tax basis;
    their earnings basis becomes the value at the transfer, so that neither pocket gains by it.
    """
    cmd, ctx, _, book, origin, _, destination = transfer
    roll_business_day(book, origin, ctx)
    roll_business_day(book, destination, ctx)
    book.begin(JournalKind.ON_US, ctx, settles_on=ctx.business_date)
    target_cents = cmd.amount
    if target_cents is None:
        target_cents = sum(cents_for(units, ctx.mark(cusip)) for cusip, units in origin.positions())
    held_back = fees.split_accrued_fee(origin.fee_accrued)[0] + origin.held_cents(ctx.now, ctx.calendars)
    sales = lots.plan_sale(origin.lots, target_cents, ctx.mark) if target_cents > 0 else None
    moved = sum(sale.proceeds_cents for sale in sales or ())
    if sales is None or liquidation_value(origin, ctx.same_day._replace(price_of=ctx.mark)) - moved < held_back:
        raise _Rejected("INSUFFICIENT_FUNDS")
    for sale in sales:
        _move_lots(transfer, sale)
    recover_overdraft_by_selling(book, destination, ctx)
    book.close()
    return moved


def _move_lots(transfer: _Transfer, sale: Sale[Lot]) -> None:
    _, ctx, transfer_id, book, origin, _, destination = transfer
    tax = earnings = 0
    left_units, left_value = sale.units, sale.proceeds_cents
    for lot, units in sale.taken:
        tax_part = lots.allocate_basis(lot.tax_basis, units, lot.balance)
        earnings_part = lots.allocate_basis(lot.earnings_basis, units, lot.balance)
        value_part = lots.allocate_basis(left_value, units, left_units)
        left_units, left_value = left_units - units, left_value - value_part
        here = book.lot(destination, lot.asset, lot.acquired_on, maturity=ctx.bill(lot.asset).maturity)
        book.post(lot, here, units)
        book.lot_out(origin, lot, tax_part, earnings=earnings_part)
        book.lot_in(destination, here, tax_part, earnings=value_part)
        tax += tax_part
        earnings += earnings_part
    origin.realised += sale.proceeds_cents - earnings
    origin.outflow += sale.proceeds_cents
    destination.inflow += sale.proceeds_cents
    for pocket, other, incoming, basis in (
        (origin, destination, False, earnings),
        (destination, origin, True, sale.proceeds_cents),
    ):
        recording.trade(
            book,
            pocket,
            ctx,
            activity=TradeActivity.SAME_ENTITY_SECURITY_TRANSFER,
            incoming=incoming,
            cusip=sale.cusip,
            units=sale.units,
            price_micros=sale.price_micros,
            notional=sale.proceeds_cents,
            tax_basis=tax,
            earnings_basis=basis,
            settles_on=book.business_date,
            counter_pocket_id=other.pocket_id,
            transfer_id=transfer_id,
        )


def _record_transaction(
    transfer: _Transfer, direction: Direction, group: UUID, *, posting_no: int, amount: int, settles_at: datetime
) -> None:
    """Record the transaction of one side; only the payer has a counterparty."""
    cmd, _, transfer_id, payer, origin, payee, destination = transfer
    paid = direction == Direction.DEBIT
    (book, pocket), (other, other_pocket) = ((payer, origin), (payee, destination))[:: 1 if paid else -1]
    text, reference = cmd.order.description, cmd.order.end_to_end_identification
    remittance = {
        "unstructured": [text] if text else [],
        "structured": {"end_to_end_identification": reference} if reference else None,
    }
    recording.transaction(
        book,
        pocket,
        posting_no=posting_no,
        group=group,
        place=1 if paid else 2,
        type=TransactionType.ON_US,
        direction=direction,
        amount=amount,
        title=(title := "Transfer reversed" if cmd.order.reverses else _TITLE[cmd.type]),
        description=text or title,
        settles_at=settles_at,
        details={
            **({"reverses_id": cmd.order.reverses} if cmd.order.reverses else {}),
            "on_us_transfer_id": transfer_id,
            "on_us_transfer_type": cmd.type,
            "source": cmd.order.source,
            "target": cmd.order.target,
            "counterparty": {
                "id": cmd.order.counterparty_id if paid else None,
                "name": other.name,
                "network_address": cmd.addresses[paid],
                "pocket_id": other_pocket.pocket_id,
            },
            "end_to_end_identification": reference,
        },
        remittance=remittance if text or reference else None,
    )


_TITLE = {
    "PARTNER_CUSTOMER_FUNDING": "Funding",
    "PARTNER_CUSTOMER_DEFUNDING": "Defunding",
    "INTERNAL_REALLOCATION": "Internal reallocation",
    "PEER_TO_PEER": "On-us transfer",
}


def _record_transfer(
    payer: Book,
    cmd: TransferOnUs,
    ctx: Context,
    transfer_id: UUID,
    status: TransferStatus,
    reason: str | None,
    amount: int,
) -> Outcome:
    assert cmd.to_pocket_id is not None
    payload = kinds.OnUsPayload(
        on_us_id=transfer_id, origin_account_id=cmd.from_pocket_id, destination_account_id=cmd.to_pocket_id
    )
    # An approved transfer was accepted before: raise both events.
    for passed in (TransferStatus.PENDING, status) if cmd.approved else (status,):
        recording.event(payer, ctx, _KINDS[passed], payload=payload)
    if cmd.accepted:
        payer.drop(payer.pending, transfer_id)
        payer.change(OnUsTransferRow, transfer_id, status=status, reason=reason, amount=amount)
    else:
        row = OnUsTransferRow(
            customer_id=payer.customer_id,
            transfer_id=transfer_id,
            partner_id=cmd.partner_id,
            type=cmd.type,
            status=status,
            reason=reason,
            from_pocket_id=cmd.from_pocket_id,
            to_pocket_id=cmd.to_pocket_id,
            amount=amount,
            request=to_json(cmd.order),
            created_at=ctx.now,
            reverses_id=cmd.order.reverses,
        )
        payer.draft.add(row)
        payer.put(payer.referenced, transfer_id, row)
        payer.enter("transfer", str(transfer_id), transfer_id)
        if status == TransferStatus.PENDING:
            waiting = PendingTransfer(cmd.from_pocket_id, cmd.to_pocket_id)
            payer.put(payer.pending, transfer_id, waiting)
    told = {"status": status, "reason": reason, "amount": amount, "made_at": iso_z(ctx.now)}
    return {"transfer_id": str(transfer_id), **told}
