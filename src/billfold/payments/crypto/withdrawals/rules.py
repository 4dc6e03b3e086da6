"""Withdrawals are booked in full when they are accepted; rejected ones are returned. Pure.

From then on the rail account holds the money. The chain's results arrive as commands: submitted, completed when a
paying transaction is final, rejected when none can be any more.
"""

from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

import msgspec

from billfold.accounts.agreements.rules import require_accepted
from billfold.accounts.counterparties.rules.verification_kinds import check_payable
from billfold.accounts.counterparties.types import Payee
from billfold.accounts.pockets.rules import pocket_of, require_open
from billfold.events import kinds
from billfold.ledger.book import recording
from billfold.ledger.book.book import Book
from billfold.ledger.book.draft import PocketBook
from billfold.ledger.commands import Books, Command, Outcome, Reference, book_of, decides
from billfold.ledger.context import BankPolicy, Context
from billfold.ledger.types import AccountKind, Direction, EventKind, JournalKind, TransactionType
from billfold.platform.database.rows import Row
from billfold.platform.errors import NotFound, Refused
from billfold.platform.money import format_usd
from billfold.treasury.rules.day_end import roll_business_day
from billfold.treasury.rules.sweep import sweep_and_invest
from billfold.treasury.rules.withdraw import InsufficientFunds, insufficient_funds, withdraw


class WithdrawalStatus(StrEnum):
    """PENDING until a transaction that pays it was sent, PROCESSING until such a transaction is final."""

    PENDING = "PENDING"
    PROCESSING = "PROCESSING"
    COMPLETED = "COMPLETED"
    REJECTED = "REJECTED"


UNDER_WAY = frozenset({WithdrawalStatus.PENDING, WithdrawalStatus.PROCESSING})


class WithdrawalRow(Row, frozen=True, kw_only=True):
    """A withdrawal as stored. Its id is that of its transfer request; `wallet_address` is sealed, `amount` cents.

    `transaction_hash` is that of the final transaction, which paid it or replaced the payment. `entry_no` is
    the journal entry that booked it, `return_entry_no` the one that returned the money.
    """

    table = "crypto_withdrawal"
    key_column = "withdrawal_id"
    noun = "withdrawal"
    fingerprinted = True
    changing = frozenset({"status", "reason", "transaction_hash", "return_entry_no", "settled_at", "updated_at"})

    customer_id: UUID
    withdrawal_id: UUID
    partner_id: UUID
    pocket_id: UUID
    counterparty_id: UUID
    counterparty_name: str
    chain: str
    asset: str
    wallet_address: str
    amount: int
    status: WithdrawalStatus
    reason: str | None = None
    transaction_hash: str | None = None
    transaction_id: UUID
    entry_no: int
    return_entry_no: int | None = None
    created_at: datetime
    settled_at: datetime | None = None
    updated_at: datetime

    @property
    def is_open(self) -> bool:
        """True if it is still to be paid, or rejected."""
        return self.status in UNDER_WAY


class Objection(msgspec.Struct, frozen=True):
    """The reason why a counterparty's address is not paid: a problem code, and a sentence.

    `destination`, which decrypts the address, determines it; the rule applies it.
    """

    code: str
    detail: str


class SendUsdc(Command, frozen=True, kw_only=True):
    """Pay `amount` cents to the wallet of a counterparty, one unit of the token per dollar.

    If it was `approved` before, a refusal raises the event of a rejected withdrawal and becomes the outcome.
    """

    reference_kinds = (Reference.COUNTERPARTY,)
    withdrawal_id: UUID
    pocket_id: UUID
    amount: int
    counterparty_id: UUID
    objection: Objection | None = None
    approved: bool = False


class WithdrawalCommand(Command, frozen=True, kw_only=True):
    """A command on a recorded withdrawal."""

    reference_kinds = (Reference.CRYPTO_WITHDRAWAL,)
    withdrawal_id: UUID


class SubmitWithdrawal(WithdrawalCommand, frozen=True, kw_only=True):
    """Record that a node has a transaction that pays the withdrawal."""


class CompleteWithdrawal(WithdrawalCommand, frozen=True, kw_only=True):
    """Record that the paying transaction is final."""

    transaction_hash: str


class RejectWithdrawal(WithdrawalCommand, frozen=True, kw_only=True):
    """Record that no transaction will pay the withdrawal, and why (`TransferStateReason`).

    `transaction_hash` is the final transaction that proves this; None if none was ever signed.
    """

    reason: str
    transaction_hash: str | None = None


_RAIL = "USDC"
CAUSE = "crypto_withdrawal"
"""The cause of a withdrawal's transactions: only its own commands reverse them."""


@decides(SendUsdc)
def send_usdc(books: Books, cmd: SendUsdc, ctx: Context) -> Outcome:
    """Book a withdrawal.

    Refuses: customer-not-open, agreement-not-accepted, pocket-not-open, pocket-frozen, counterparty-type-mismatch,
    counterparty-not-verified, sanction-screen-failed, amount-below-minimum, insufficient-funds, and any objection to
    the address. NotFound for a pocket or counterparty that is not the customer's. If it was approved before, a refusal
    raises the event of a rejected withdrawal and becomes the outcome.
    """
    book = book_of(books, cmd.customers[0])
    try:
        return _send_withdrawal(book, cmd, ctx)
    except Refused as refusal:
        if not cmd.approved:
            raise
        book.undo()
        _raise_event(book, ctx, kinds.CRYPTO_OUT_REJECTED, cmd)
        return {"status": WithdrawalStatus.REJECTED, "code": refusal.code}


def _send_withdrawal(book: Book, cmd: SendUsdc, ctx: Context) -> Outcome:
    pocket = pocket_of(book, cmd.pocket_id)
    require_accepted(book, ctx)
    require_open(book, pocket)
    payee: Payee | None = book.referenced.get(cmd.counterparty_id)
    if payee is None:
        raise NotFound("There is no such counterparty.")
    check_payable(payee, _RAIL, unverified_wires=False)
    if cmd.objection is not None:
        raise Refused(cmd.objection.code, cmd.objection.detail)
    require_minimum(cmd.amount, ctx.terms)
    withdrawal = _post_withdrawal(book, pocket, cmd, ctx=ctx, payee=payee)
    book.draft.add(withdrawal)
    book.keep_fingerprint(withdrawal)
    book.enter(WithdrawalRow.table, str(withdrawal.withdrawal_id), withdrawal.withdrawal_id)
    _raise_event(book, ctx, kinds.CRYPTO_OUT_PROCESSING, cmd)
    return _outcome(withdrawal)


def _post_withdrawal(book: Book, pocket: PocketBook, cmd: SendUsdc, *, ctx: Context, payee: Payee) -> WithdrawalRow:
    """Post the payment; return the withdrawal."""
    group = ctx.ids.next_group()
    roll_business_day(book, pocket, ctx)
    book.begin(JournalKind.PAYMENT, ctx, settles_on=ctx.business_date)
    try:
        rail = book.internal_account(AccountKind.RAIL_CRYPTO)
        amount, posting_no, _ = withdraw(book, pocket, ctx, amount=cmd.amount, terms=ctx.same_day, to=rail)
    except InsufficientFunds:
        why = "The pocket cannot raise the amount today."
        raise insufficient_funds(why, book, pocket, ctx, amount=cmd.amount) from None
    withdrawal = WithdrawalRow(
        customer_id=book.customer_id,
        withdrawal_id=cmd.withdrawal_id,
        partner_id=pocket.partner_id,
        pocket_id=pocket.pocket_id,
        counterparty_id=payee.counterparty_id,
        counterparty_name=payee.name,
        **{name: payee.details[name] for name in ("chain", "asset", "wallet_address")},
        amount=amount,
        status=WithdrawalStatus.PENDING,
        transaction_id=group,
        entry_no=book.entry_no,
        created_at=ctx.now,
        updated_at=ctx.now,
    )
    _record_payment(book, pocket, ctx, withdrawal, posting_no=posting_no, group=group, is_sent=True)
    book.close()
    return withdrawal


def require_minimum(amount: int, terms: BankPolicy) -> None:
    """Refuse an amount that is not worth its transaction on the chain. Raises Refused `amount-below-minimum`."""
    least = terms.usdc_minimum_cents
    if amount < least:
        raise Refused("amount-below-minimum", f"At least {format_usd(least)} leave as USDC.", minimum_usdc=least)


@decides(SubmitWithdrawal)
def submit_withdrawal(books: Books, cmd: SubmitWithdrawal, ctx: Context) -> Outcome:
    """PENDING becomes PROCESSING. A later status is kept."""
    book = book_of(books, cmd.customers[0])
    withdrawal = _referenced_withdrawal(book, cmd.withdrawal_id)
    if withdrawal.status == WithdrawalStatus.PENDING:
        withdrawal = _change_withdrawal(book, withdrawal, ctx, status=WithdrawalStatus.PROCESSING)
    return _outcome(withdrawal)


@decides(CompleteWithdrawal)
def complete_withdrawal(books: Books, cmd: CompleteWithdrawal, ctx: Context) -> Outcome:
    """PENDING or PROCESSING becomes COMPLETED. A final status is kept."""
    book = book_of(books, cmd.customers[0])
    withdrawal = _referenced_withdrawal(book, cmd.withdrawal_id)
    if not withdrawal.is_open:
        return _outcome(withdrawal)
    _raise_event(book, ctx, kinds.CRYPTO_OUT_SUCCESS, withdrawal)
    changes = {"status": WithdrawalStatus.COMPLETED, "transaction_hash": cmd.transaction_hash, "settled_at": ctx.now}
    return _outcome(_change_withdrawal(book, withdrawal, ctx, **changes))


@decides(RejectWithdrawal)
def reject_withdrawal(books: Books, cmd: RejectWithdrawal, ctx: Context) -> Outcome:
    """Reverse the withdrawal, and invest the money. A final status is kept: the money is returned only once."""
    book = book_of(books, cmd.customers[0])
    withdrawal = _referenced_withdrawal(book, cmd.withdrawal_id)
    if not withdrawal.is_open:
        return _outcome(withdrawal)
    pocket = book.pockets[withdrawal.pocket_id]
    roll_business_day(book, pocket, ctx)
    entry_no = book.begin(JournalKind.DEPOSIT, ctx, settles_on=ctx.settles_on, reverses=withdrawal.entry_no)
    group = ctx.ids.next_group()
    posting_no = book.post(book.internal_account(AccountKind.RAIL_CRYPTO), pocket.bank, withdrawal.amount)
    _record_payment(book, pocket, ctx, withdrawal, posting_no=posting_no, group=group, is_sent=False)
    sweep_and_invest(book, pocket, ctx, amount=withdrawal.amount)
    book.close()
    _raise_event(book, ctx, kinds.CRYPTO_OUT_REJECTED, withdrawal)
    end = {"status": WithdrawalStatus.REJECTED, "reason": cmd.reason, "transaction_hash": cmd.transaction_hash}
    return _outcome(_change_withdrawal(book, withdrawal, ctx, **end, return_entry_no=entry_no))


def _change_withdrawal(book: Book, withdrawal: WithdrawalRow, ctx: Context, **columns: Any) -> WithdrawalRow:
    """Change a withdrawal, also for later commands of this batch."""
    book.change(WithdrawalRow, withdrawal.withdrawal_id, updated_at=ctx.now, **columns)
    changed = msgspec.structs.replace(withdrawal, updated_at=ctx.now, **columns)
    book.put(book.referenced, withdrawal.withdrawal_id, changed)
    return changed


def _referenced_withdrawal(book: Book, withdrawal_id: UUID) -> WithdrawalRow:
    withdrawal: WithdrawalRow | None = book.referenced.get(withdrawal_id)
    if withdrawal is None:
        raise NotFound("There is no such withdrawal.")
    return withdrawal


def _record_payment(
    book: Book, pocket: PocketBook, ctx: Context, row: WithdrawalRow, *, posting_no: int, group: UUID, is_sent: bool
) -> None:
    to = f"{row.asset} to {row.counterparty_name}"
    recording.transaction(
        book,
        pocket,
        posting_no=posting_no,
        group=group,
        type=TransactionType.GENERIC,
        direction=Direction.DEBIT if is_sent else Direction.CREDIT,
        amount=row.amount,
        title=f"{row.asset} {'sent' if is_sent else 'returned'}",
        description=to if is_sent else f"{to} was rejected",
        settles_at=ctx.now,
        details={"cause": CAUSE, "crypto_transfer_id": str(row.withdrawal_id)},
    )


def _raise_event(book: Book, ctx: Context, kind: EventKind[kinds.CryptoPayload], of: SendUsdc | WithdrawalRow) -> None:
    payload = kinds.CryptoPayload(crypto_transfer_id=of.withdrawal_id, service_account_id=of.pocket_id)
    recording.event(book, ctx, kind, payload=payload)


def _outcome(withdrawal: WithdrawalRow) -> Outcome:
    shown = {name: getattr(withdrawal, name) for name in ("status", "reason", "transaction_hash")}
    return {"withdrawal_id": str(withdrawal.withdrawal_id), **shown}
