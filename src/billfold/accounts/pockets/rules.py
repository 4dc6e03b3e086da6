"""Opening, changing, freezing and closing a Pocket."""

from datetime import datetime
from uuid import UUID

from billfold.accounts.agreements.rules import require_accepted
from billfold.accounts.pockets import commands
from billfold.accounts.portals.rules import close_portals, new_bank_portal
from billfold.bills.rules import fees, strategies, valuation
from billfold.events import kinds
from billfold.ledger import types
from billfold.ledger.book import recording
from billfold.ledger.book.book import Book
from billfold.ledger.book.draft import PocketBook
from billfold.ledger.commands import Books, Outcome, book_of, decides
from billfold.ledger.context import Context
from billfold.ledger.customers import CustomerStatus, require_active
from billfold.ledger.types import (
    EventKind,
    PocketStatus,
)
from billfold.platform.errors import NotFound, Refused
from billfold.treasury.rules.day_end import ONE_DAY, charge_fee, roll_business_day
from billfold.treasury.rules.overdraft import overdraft_of
from billfold.treasury.rules.sweep import sweep_and_invest
from billfold.treasury.rules.unsettled import pay_from_cash


@decides(commands.OpenPocket)
def open_pocket(books: Books, cmd: commands.OpenPocket, ctx: Context) -> Outcome:
    """Open the pocket, its two accounts and its default portal. Refuses: customer-not-open, agreement-not-accepted."""
    book = book_of(books, cmd.customers[0])
    require_active(book.account_status)
    require_accepted(book, ctx)
    _require_strategy(cmd.deposit_weeks, cmd.reinvestment_weeks)
    pocket = PocketBook(
        pocket_id=cmd.pocket_id or ctx.ids.next(),
        partner_id=cmd.partner_id,
        name=cmd.name,
        type=cmd.type,
        status=PocketStatus.OPEN,
        deposit_weeks=cmd.deposit_weeks,
        reinvestment_weeks=cmd.reinvestment_weeks,
        opened_at=ctx.now,
        accrued_through=ctx.today - ONE_DAY,
        next_fee_date=fees.fee_charge_date(ctx.business_date, ctx.calendars),
        real_time_yield=cmd.real_time_yield,
    )
    book.open_accounts(pocket)
    book.alter(pocket)
    book.enter("pocket", str(pocket.pocket_id), pocket.pocket_id)
    _raise_event(book, pocket, ctx, kinds.POCKET_CREATED)
    portal = new_bank_portal(book, pocket.pocket_id, ctx, name=cmd.name)
    if book.account_status == CustomerStatus.PENDING:
        book.set_account_status(CustomerStatus.OPEN)
    return {"pocket_id": str(pocket.pocket_id), "portal_id": str(portal.portal_id)}


@decides(commands.UpdatePocket)
def update_pocket(books: Books, cmd: commands.UpdatePocket, ctx: Context) -> Outcome:
    """Rename, change strategies, or close.

    Refuses: pocket-not-open, customer-not-open, pocket-strategy-locked, pocket-not-empty, last-open-pocket.
    """
    book = book_of(books, cmd.customers[0])
    pocket = pocket_of(book, cmd.pocket_id)
    if pocket.status not in types.NOT_CLOSED or (cmd.close_for and pocket.status != PocketStatus.OPEN):
        raise Refused("pocket-not-open", f"The pocket is {pocket.status}.")
    require_active(book.account_status)
    changes_strategy = cmd.deposit_weeks is not None or not cmd.keep_reinvestment
    if changes_strategy and pocket.type == "NETWORK":
        raise Refused("pocket-strategy-locked", "A network pocket keeps its strategy.")
    _require_strategy(cmd.deposit_weeks, cmd.reinvestment_weeks)
    book.alter(pocket)
    if cmd.name is not None:
        pocket.name = cmd.name
    if cmd.deposit_weeks is not None:
        pocket.deposit_weeks = cmd.deposit_weeks
    if not cmd.keep_reinvestment:
        pocket.reinvestment_weeks = cmd.reinvestment_weeks
        if cmd.reinvestment_weeks is not None and pocket.uninvested:
            pocket.uninvested = 0  # uninvested matured money is invested like any other
            pocket.invest_at = ctx.calendars.next_open(ctx.now)
    if cmd.close_for:
        _close_pocket(book, pocket, cmd.close_for, ctx=ctx)
    else:
        _raise_event(book, pocket, ctx)
    return {"pocket_id": str(pocket.pocket_id), "status": pocket.status}


@decides(commands.SetPocketState)
def set_pocket_state(books: Books, cmd: commands.SetPocketState, ctx: Context) -> Outcome:
    """Freeze or unfreeze a pocket, or switch its real-time yield. Refuses: pocket-not-open."""
    book = book_of(books, cmd.customers[0])
    pocket = pocket_of(book, cmd.pocket_id)
    if pocket.status not in types.NOT_CLOSED:
        raise Refused("pocket-not-open", f"The pocket is {pocket.status}.")
    book.alter(pocket)
    before = pocket.status, pocket.real_time_yield
    if cmd.status is not None:
        pocket.status = cmd.status
    if cmd.real_time_yield is not None:
        pocket.real_time_yield = cmd.real_time_yield
    if before != (pocket.status, pocket.real_time_yield):
        _raise_event(book, pocket, ctx)
    return {"pocket_id": str(pocket.pocket_id), "status": pocket.status, "real_time_yield": pocket.real_time_yield}


def pocket_of(book: Book, pocket_id: UUID) -> PocketBook:
    """Return the customer's pocket. Raises NotFound."""
    pocket = book.pockets.get(pocket_id)
    if pocket is None:
        raise NotFound
    return pocket


def place_hold(
    book: Book, pocket: PocketBook, *, hold_id: UUID, amount: int, until: datetime, cause: types.TransactionType
) -> None:
    """Keep cents in the pocket until an instant. `cause` is the type of the transaction that brought them."""
    pocket.liens.append((amount, until))
    ids = {"customer_id": book.customer_id, "hold_id": hold_id, "pocket_id": pocket.pocket_id}
    book.draft.add(commands.Hold(**ids, amount=amount, until=until, cause=cause))


def require_open(book: Book, pocket: PocketBook) -> None:
    """Raise Refused customer-not-open, pocket-frozen or pocket-not-open unless money may leave the pocket."""
    require_usable(book.account_status, pocket)


def require_usable(account_status: str, pocket: PocketBook | commands.PocketRow) -> None:
    """Raise Refused customer-not-open, pocket-frozen or pocket-not-open, as `require_open` for a stored pocket."""
    require_active(account_status)
    if pocket.status == PocketStatus.FROZEN:
        raise Refused("pocket-frozen", "The pocket is frozen: nothing leaves it.")
    require_not_closed(pocket)


def require_not_closed(pocket: PocketBook | commands.PocketRow) -> None:
    """Raise Refused pocket-not-open if the pocket is closed."""
    if pocket.status not in types.NOT_CLOSED:
        raise Refused("pocket-not-open", f"The pocket is {pocket.status}.")


def mark_closed(book: Book, pocket: PocketBook, ctx: Context, *, reason: str) -> None:
    """Close an empty Pocket and its portals; any unpaid fee is waived.

    A job closes what other parts keep for it, such as cards.
    """
    close_portals(book, pocket.pocket_id, ctx)
    book.schedule(commands.POCKET_CLOSED_JOB, pocket.pocket_id, ctx.now)
    book.alter(pocket)
    pocket.status, pocket.closed_at, pocket.closure_reason = PocketStatus.CLOSED, ctx.now, reason
    pocket.fee_accrued, pocket.invest_at = 0, None
    _raise_event(book, pocket, ctx)


def _raise_event(
    book: Book, pocket: PocketBook, ctx: Context, kind: EventKind[kinds.PocketPayload] = kinds.POCKET_UPDATED
) -> None:
    recording.event(book, ctx, kind, kinds.PocketPayload(pocket_id=pocket.pocket_id, status=pocket.status))


def open_payments(book: Book) -> list[commands.OpenPayment]:
    """Return the known payments that wait to be sent, collected or settled by their network."""
    seen = book.referenced.values()
    return [each for each in seen if isinstance(each, commands.OpenPayment) and each.is_open]


def _require_strategy(*terms: int | None) -> None:
    """Require terms for which bills are sold: otherwise the pocket could never accept money. Raises NotFound."""
    for weeks in terms:
        if weeks is not None:
            strategies.strategy_for_weeks(weeks)


def _close_pocket(book: Book, pocket: PocketBook, reason: str, ctx: Context) -> None:
    """Close a pocket that is not the customer's last; its portals close with it.

    Its fee is charged, and remaining cash that buys no bill is paid into the customer's oldest other pocket.
    """
    if pocket.lots or pocket.cash.reserved or pocket.held_cents(ctx.now, ctx.calendars):
        raise Refused("pocket-not-empty", "The pocket still holds money. Transfer it to another pocket or payee first.")
    _require_settled(book, pocket, ctx)
    others = [p for p in book.pockets.values() if p is not pocket and p.status == PocketStatus.OPEN]
    if not others:
        raise Refused("last-open-pocket", "A customer keeps at least one open pocket.")
    charge_last_fee(book, pocket, ctx)
    if pocket.cash.balance >= valuation.FACE_CENTS:
        raise Refused("pocket-not-empty", "The pocket still holds money. Transfer it to another pocket or payee first.")
    if pocket.cash.balance:
        _pay_out_rest(book, pocket, ctx, to=min(others, key=lambda p: (p.opened_at, p.bank.no)))
    mark_closed(book, pocket, ctx, reason=reason)


def _require_settled(book: Book, pocket: PocketBook, ctx: Context) -> None:
    """Raise Refused pocket-not-empty if the pocket has an overdraft or anything in process."""
    if overdraft_of(pocket):
        raise Refused(
            "pocket-not-empty", f"The pocket owes the bank {overdraft_of(pocket)} cents. Pay them in, then close it."
        )
    if pocket.unsettled_until is not None and not ctx.calendars.has_settled(pocket.unsettled_until, ctx.today):
        day = ctx.calendars.settlement_on_or_after(pocket.unsettled_until)
        raise Refused("pocket-not-empty", f"Its trades settle on {day}. Close the pocket on that day.")
    if any(t.touches(pocket.pocket_id) for t in book.pending.values()):
        raise Refused("pocket-not-empty", "A transfer of the pocket is still pending.")
    if any(payment.pocket_id == pocket.pocket_id for payment in open_payments(book)):
        raise Refused("pocket-not-empty", "A payment of the pocket is still in process.")


def charge_last_fee(book: Book, pocket: PocketBook, ctx: Context) -> None:
    """Charge the fee accrued by yesterday to the cash of a pocket that no longer holds bills."""
    if not pocket.cash.balance or pocket.lots:
        return
    roll_business_day(book, pocket, ctx)
    book.begin(types.JournalKind.FEE, ctx, settles_on=ctx.business_date)
    charge_fee(book, pocket, ctx)
    book.close()


def _pay_out_rest(book: Book, pocket: PocketBook, ctx: Context, *, to: PocketBook) -> None:
    """Pay all cash of a pocket into another of the same customer, in one journal entry."""
    cents = pocket.cash.balance
    roll_business_day(book, to, ctx)
    book.begin(types.JournalKind.ON_US, ctx, settles_on=ctx.settles_on)
    on_us = book.internal_account(types.AccountKind.ON_US)
    unsettled = pay_from_cash(book, pocket, ctx, cents)
    paid_no = book.post(pocket.bank, on_us, cents)
    pocket.outflow += cents
    received_no = book.post(on_us, to.bank, cents)
    sweep_and_invest(book, to, ctx, amount=cents, unsettled=unsettled)
    group = ctx.ids.next_group()
    sides = (
        (pocket, to, paid_no, types.Direction.DEBIT),
        (to, pocket, received_no, types.Direction.CREDIT),
    )
    for place, (own, other, posting_no, direction) in enumerate(sides, 1):
        recording.transaction(
            book,
            own,
            posting_no=posting_no,
            group=group,
            place=place,
            type=types.TransactionType.GENERIC,
            direction=direction,
            amount=cents,
            title="Pocket closed",
            description=f"What was left in {pocket.name}" if own is to else f"What was left, to {to.name}",
            settles_at=book.booked_at,
            details={"pocket_id": other.pocket_id},
        )
    book.close()
