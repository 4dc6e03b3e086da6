"""Security transfers from and to other custodians, free of payment, lot by lot.

A lot keeps its acquisition date and tax basis. Each lot has its own journal entry, so that a
rejected delivery is reversed lot by lot.
"""

from collections.abc import Iterator, Sequence
from datetime import date, datetime
from enum import StrEnum
from uuid import UUID

import msgspec

from billfold.accounts.agreements.rules import require_accepted
from billfold.accounts.pockets.rules import pocket_of, require_not_closed, require_open
from billfold.bills.rules import fees
from billfold.bills.rules import lots as bill_lots
from billfold.bills.types import Bill
from billfold.ledger.book import recording
from billfold.ledger.book.book import Book
from billfold.ledger.book.draft import Lot, PocketBook, to_json
from billfold.ledger.commands import AuditedAction, Books, Command, Outcome, Reference, book_of, decides
from billfold.ledger.context import Context
from billfold.ledger.types import AccountKind, JournalKind, TradeActivity
from billfold.payments.on_us.commands import PendingTransfer
from billfold.platform.database.rows import Row
from billfold.platform.dates import et_date
from billfold.platform.errors import NotFound, Refused
from billfold.platform.money import cents_for
from billfold.treasury.rules.day_end import roll_business_day
from billfold.treasury.rules.liquidate import liquidation_value
from billfold.treasury.rules.overdraft import recover_overdraft_by_selling


class SecurityTransferStatus(StrEnum):
    """The status of a security transfer."""

    PENDING = "PENDING"
    COMPLETED = "COMPLETED"
    REJECTED = "REJECTED"


class SecurityTransferDirection(StrEnum):
    """From another custodian, or to one."""

    IN = "IN"
    OUT = "OUT"


class MovedLot(msgspec.Struct, frozen=True, array_like=True):
    """A transferred lot: its journal entry, acquisition date, units, tax basis in cents, and the account it left."""

    entry_no: int
    acquired_on: date
    units: int
    tax_basis: int
    account_no: int | None = None


class SecurityTransfer(Row, frozen=True, kw_only=True):
    """A security transfer as stored. `market_value` is in cents at booking.

    `lots` is the JSON text of `moved_lots`.
    """

    table = "security_transfer"
    key_column = "transfer_id"

    customer_id: UUID
    transfer_id: UUID
    pocket_id: UUID
    direction: SecurityTransferDirection
    cusip: str
    units: int
    market_value: int
    status: SecurityTransferStatus
    counterparty_name: str
    counterparty_account: str
    lots: str
    created_at: datetime
    reason: str | None = None
    ended_at: datetime | None = None

    def moved_lots(self) -> tuple[MovedLot, ...]:
        """Return the transferred lots."""
        return msgspec.json.decode(self.lots, type=tuple[MovedLot, ...])


class ReceiveBills(Command, frozen=True, kw_only=True):
    """Receive one lot. `cost_cents` is its tax basis; None: its value on arrival."""

    audit = AuditedAction("pocket", "received", fields=("cusip", "units", "counterparty_name"))
    transfer_id: UUID
    pocket_id: UUID
    cusip: str
    units: int
    counterparty_name: str
    counterparty_account: str
    acquired_on: date | None = None
    cost_cents: int | None = None


class DeliverBills(Command, frozen=True, kw_only=True):
    """Deliver `units` of a bill, oldest lots first."""

    audit = AuditedAction("pocket", "delivered", fields=("cusip", "units", "counterparty_name"))
    transfer_id: UUID
    pocket_id: UUID
    cusip: str
    units: int
    counterparty_name: str
    counterparty_account: str


class EndDelivery(Command, frozen=True, kw_only=True):
    """Record the result from the custodian: delivered, or rejected for a `reason`."""

    reference_kinds = (Reference.SECURITY_TRANSFER,)
    transfer_id: UUID
    reason: str | None = None


ACTIVITY = TradeActivity.EXTERNAL_SECURITY_TRANSFER
APPOINTMENT = "custody.deliver"
"""The kind of scheduled job that sends a delivery to the custodian."""
_PARTY = ("counterparty_name", "counterparty_account")
RECORDED = ("pocket_id", "direction", "cusip", "units", "market_value", *_PARTY, "lots")
"""The columns of a transfer that its command's outcome repeats."""


@decides(ReceiveBills)
def receive_bills(books: Books, cmd: ReceiveBills, ctx: Context) -> Outcome:
    """Book the received lot. Refuses: pocket-not-open, bill-not-deliverable."""
    book = book_of(books, cmd.customers[0])
    pocket = pocket_of(book, cmd.pocket_id)
    require_not_closed(pocket)
    bill = _outstanding_bill(ctx, cmd.cusip)
    today = et_date(ctx.now)  # not the business date, which is after the day on a weekend
    acquired_on = cmd.acquired_on or today
    if not bill.first_issue <= acquired_on <= today:
        raise Refused("bill-not-deliverable", f"acquired_on {acquired_on} is not between issue and today.")
    worth = cents_for(cmd.units, _mark(ctx, cmd.cusip))
    cost = worth if cmd.cost_cents is None else cmd.cost_cents
    roll_business_day(book, pocket, ctx)
    lot = MovedLot(0, acquired_on, cmd.units, tax_basis=cost)
    moved = _receive_lot(book, pocket, ctx, transfer_id=cmd.transfer_id, cusip=cmd.cusip, moved=lot)
    return _record_transfer(book, ctx, cmd, status=SecurityTransferStatus.COMPLETED, worth=worth, lots=[moved])


@decides(DeliverBills)
def deliver_bills(books: Books, cmd: DeliverBills, ctx: Context) -> Outcome:
    """Book the delivery, and schedule its order to the custodian.

    Refuses: rail-not-available, customer-not-open, agreement-not-accepted, pocket-frozen, pocket-not-open,
    bill-not-deliverable,
    insufficient-funds.
    """
    if not ctx.terms.delivers_bills:
        raise Refused("rail-not-available", "The bank has no custodian that delivers bills.")
    book = book_of(books, cmd.customers[0])
    pocket = pocket_of(book, cmd.pocket_id)
    require_accepted(book, ctx)
    require_open(book, pocket)
    _outstanding_bill(ctx, cmd.cusip)
    _require_deliverable(pocket, cmd, ctx)
    roll_business_day(book, pocket, ctx)
    lots = [lot for lot in pocket.lots if lot.asset == cmd.cusip]
    moved = [
        _deliver_lot(book, pocket, ctx, transfer_id=cmd.transfer_id, lot=lot, units=units)
        for lot, units in _oldest_first(lots, cmd.units)
    ]
    worth = sum(cents_for(each.units, _mark(ctx, cmd.cusip)) for each in moved)
    book.schedule(APPOINTMENT, cmd.transfer_id, ctx.now)
    book.put(book.pending, cmd.transfer_id, PendingTransfer(cmd.pocket_id, None))
    return _record_transfer(book, ctx, cmd, status=SecurityTransferStatus.PENDING, worth=worth, lots=moved)


@decides(EndDelivery)
def complete_delivery(books: Books, cmd: EndDelivery, ctx: Context) -> Outcome:
    """Record that it was delivered, or reverse every lot. Refuses: delivery-ended."""
    book = book_of(books, cmd.customers[0])
    transfer = book.referenced.get(cmd.transfer_id)
    if not isinstance(transfer, SecurityTransfer):
        raise NotFound
    if transfer.status != SecurityTransferStatus.PENDING:
        raise Refused("delivery-ended", f"The delivery is {transfer.status} already.")
    book.drop(book.pending, cmd.transfer_id)
    status = SecurityTransferStatus.COMPLETED if cmd.reason is None else SecurityTransferStatus.REJECTED
    if status == SecurityTransferStatus.REJECTED:
        pocket = pocket_of(book, transfer.pocket_id)
        roll_business_day(book, pocket, ctx)
        for each in transfer.moved_lots():
            _receive_lot(book, pocket, ctx, transfer_id=transfer.transfer_id, cusip=transfer.cusip, moved=each)
    book.change(SecurityTransfer, cmd.transfer_id, status=status, reason=cmd.reason, ended_at=ctx.now)
    book.put(book.referenced, cmd.transfer_id, msgspec.structs.replace(transfer, status=status))
    return {"transfer_id": str(cmd.transfer_id), "status": status, "reason": cmd.reason}


# -- conditions -------------------------------------------------------------------------


def _outstanding_bill(ctx: Context, cusip: str) -> Bill:
    """Return the bill if it can be transferred; a maturing bill is redeemed here."""
    try:
        bill = ctx.bill(cusip)
    except NotFound:
        raise Refused("bill-not-deliverable", f"{cusip} is not a known Treasury bill.") from None
    if bill.simulated and ctx.market.age_max_days is not None:
        raise Refused("bill-not-deliverable", f"{cusip} is a simulated bill.")
    if bill.maturity <= ctx.business_date:
        raise Refused("bill-not-deliverable", f"The bill matured on {bill.maturity}.")
    return bill


def _require_deliverable(pocket: PocketBook, cmd: DeliverBills, ctx: Context) -> None:
    if pocket.settles_after(ctx.business_date):
        raise Refused("bill-not-deliverable", f"The pocket's trades settle on {pocket.unsettled_until}.")
    held = sum(lot.balance for lot in pocket.lots if lot.asset == cmd.cusip)
    held_back = fees.split_accrued_fee(pocket.fee_accrued)[0] + pocket.held_cents(ctx.now, ctx.calendars)
    leaves = cents_for(cmd.units, ctx.t0_bid(cmd.cusip))
    if held < cmd.units:
        raise Refused("insufficient-funds", f"The pocket holds {held} of these bills.")
    if liquidation_value(pocket, ctx.same_day) - leaves < held_back:
        raise Refused("insufficient-funds", f"{held_back} cents are on hold or due as a fee.")


def _mark(ctx: Context, cusip: str) -> int:
    return ctx.market.mark(ctx.market.bill(cusip), ctx.now)


# -- lots --------------------------------------------------------------------------------


def _oldest_first(lots: Sequence[Lot], units: int) -> Iterator[tuple[Lot, int]]:
    for lot in list(lots):
        taken = min(lot.balance, units)
        if taken:
            yield lot, taken
        units -= taken


def _deliver_lot(book: Book, pocket: PocketBook, ctx: Context, transfer_id: UUID, lot: Lot, units: int) -> MovedLot:
    tax = bill_lots.allocate_basis(lot.tax_basis, units, lot.balance)
    earnings = bill_lots.allocate_basis(lot.earnings_basis, units, lot.balance)
    entry_no = _begin_journal(book, ctx, None)
    book.post(lot, book.internal_account(AccountKind.CUSTODIAN, lot.asset), units)
    book.lot_out(pocket, lot, tax, earnings=earnings)
    price = _mark(ctx, lot.asset)
    worth = cents_for(units, price)
    pocket.outflow += worth
    pocket.realised += worth - earnings
    recording.trade(
        book,
        pocket,
        ctx,
        activity=ACTIVITY,
        incoming=False,
        cusip=lot.asset,
        units=units,
        price_micros=price,
        notional=worth,
        tax_basis=tax,
        earnings_basis=earnings,
        settles_on=book.business_date,
        transfer_id=transfer_id,
    )
    book.close()
    return MovedLot(entry_no, lot.acquired_on, units, tax_basis=tax, account_no=lot.no)


def _receive_lot(
    book: Book, pocket: PocketBook, ctx: Context, transfer_id: UUID, cusip: str, moved: MovedLot
) -> MovedLot:
    """Post a received lot; a lot with a journal entry reverses that of its rejected delivery."""
    entry_no = _begin_journal(book, ctx, moved.entry_no or None)
    price = _mark(ctx, cusip)
    worth = cents_for(moved.units, price)
    maturity = ctx.bill(cusip).maturity
    lot = book.lot(pocket, cusip, moved.acquired_on, maturity, retired_no=moved.account_no)
    book.post(book.internal_account(AccountKind.CUSTODIAN, cusip), lot, moved.units)
    book.lot_in(pocket, lot, moved.tax_basis, earnings=worth)
    pocket.inflow += worth
    recording.trade(
        book,
        pocket,
        ctx,
        activity=ACTIVITY,
        incoming=True,
        cusip=cusip,
        units=moved.units,
        price_micros=price,
        notional=worth,
        tax_basis=moved.tax_basis,
        earnings_basis=worth,
        settles_on=book.business_date,
        transfer_id=transfer_id,
    )
    recover_overdraft_by_selling(book, pocket, ctx)
    book.close()
    return msgspec.structs.replace(moved, entry_no=entry_no)


def _begin_journal(book: Book, ctx: Context, reverses: int | None) -> int:
    return book.begin(JournalKind.CUSTODY, ctx, settles_on=ctx.business_date, reverses=reverses)


def _record_transfer(
    book: Book,
    ctx: Context,
    cmd: ReceiveBills | DeliverBills,
    *,
    status: SecurityTransferStatus,
    worth: int,
    lots: Sequence[MovedLot],
) -> Outcome:
    """Record a transfer; a receipt is COMPLETED at once."""
    received = status == SecurityTransferStatus.COMPLETED
    transfer = SecurityTransfer(
        customer_id=book.customer_id,
        transfer_id=cmd.transfer_id,
        pocket_id=cmd.pocket_id,
        direction=SecurityTransferDirection.IN if received else SecurityTransferDirection.OUT,
        cusip=cmd.cusip,
        units=cmd.units,
        market_value=worth,
        status=status,
        counterparty_name=cmd.counterparty_name,
        counterparty_account=cmd.counterparty_account,
        lots=to_json(lots),
        created_at=ctx.now,
    )
    book.draft.add(transfer)
    book.put(book.referenced, cmd.transfer_id, transfer)
    recorded = {name: getattr(transfer, name) for name in RECORDED}
    ids = {"transfer_id": str(cmd.transfer_id), "pocket_id": str(cmd.pocket_id)}
    return {**recorded, **ids, "status": status, "reason": None}
