"""What becomes of final deposits. Units that do not make a minimum are carried, and booked with later ones."""

from typing import Any
from uuid import UUID

import msgspec

from billfold.ledger.book.book import Book
from billfold.ledger.commands import Books, Outcome, book_of, decides
from billfold.ledger.context import Context
from billfold.ledger.types import AccountKind, JournalKind, Rail
from billfold.payments.crypto.chains import cents_of
from billfold.payments.crypto.deposits.commands import (
    ArrivedDeposit,
    CarriedUnits,
    ChainDeposit,
    CreditDeposit,
    CryptoDepositRow,
    DepositStatus,
    RecordUnbooked,
    RestoreDeposit,
    WriteOffDeposit,
)
from billfold.payments.deposits.commands import ReceiveMoney
from billfold.payments.deposits.rules import receive_money
from billfold.platform.errors import NotFound, Refused

UNAVAILABLE = "UNAVAILABLE"
"""The outcome of a credit to a portal that takes nothing, or not so much."""
CENTS_MAX = 999_999_999_999
"""The most that one deposit brings, as of a wire: a token can mint any number of units."""


@decides(CreditDeposit)
def credit_deposit(books: Books, cmd: CreditDeposit, ctx: Context) -> Outcome:
    """Credit a deposit with what is carried. Refuses: suspense-item-settled when an operator releases it twice."""
    book = book_of(books, cmd.customers[0])
    known = book.referenced.get(cmd.deposit_id)
    if isinstance(known, CryptoDepositRow) and not (cmd.is_released and known.status == DepositStatus.QUESTIONED):
        if cmd.is_released:
            raise Refused("suspense-item-settled", f"The deposit is {known.status} already.")
        return _outcome(known)
    token, units = cmd.deposit.token, int(cmd.deposit.units)
    carried = _carried(book, cmd.portal_id).get(token, 0)
    cents = max(cents_of(max(carried + units, 0), cmd.deposit.decimals).cents, 0)
    arrived: Outcome = {}
    if cents > CENTS_MAX:
        return {"status": UNAVAILABLE}
    if cents >= cmd.deposit.minimum_cents:
        arrived = receive_money(books, _payment(cmd, cents), ctx)
        if arrived["status"] != "COMPLETED":
            return {"status": UNAVAILABLE}
    status, amount = (DepositStatus.CREDITED, cents) if arrived else (DepositStatus.CARRIED, 0)
    if isinstance(known, CryptoDepositRow):
        row = _change(book, known, ctx, status=status, amount=amount)
    else:
        row = _add(book, cmd, ctx, status=status, amount=amount, reason=None)
    return _outcome(row) | {name: arrived[name] for name in ("transaction_id",) if name in arrived}


@decides(RecordUnbooked)
def record_unbooked(books: Books, cmd: RecordUnbooked, ctx: Context) -> Outcome:
    """Record a deposit that is held in suspense by another command, or that nothing is booked of."""
    book = book_of(books, cmd.customers[0])
    known = book.referenced.get(cmd.deposit_id)
    if isinstance(known, CryptoDepositRow):
        return _outcome(known)
    status = DepositStatus.HELD if cmd.amount else DepositStatus.QUESTIONED
    return _outcome(_add(book, cmd, ctx, status=status, amount=cmd.amount, reason=cmd.reason))


@decides(WriteOffDeposit)
def write_off_deposit(books: Books, cmd: WriteOffDeposit, ctx: Context) -> Outcome:
    """Post what was credited to the bank's losses: the customer keeps it, the rail will not bring it."""
    book, bank = book_of(books, cmd.customers[0]), book_of(books, cmd.customers[1])
    known = _known(book, cmd.deposit_id)
    if known.status == DepositStatus.REORGED:
        return _outcome(known)
    former = DepositStatus.CREDITED if cmd.is_released else known.status
    if former == DepositStatus.CREDITED:
        _post_loss(bank, ctx, known.amount, is_recovered=False)
    return _outcome(_change(book, known, ctx, status=DepositStatus.REORGED, reason=former))


@decides(RestoreDeposit)
def restore_deposit(books: Books, cmd: RestoreDeposit, ctx: Context) -> Outcome:
    """Take the loss back: the deposit is on the chain again, with the status that it had."""
    book, bank = book_of(books, cmd.customers[0]), book_of(books, cmd.customers[1])
    known = _known(book, cmd.deposit_id)
    if known.status != DepositStatus.REORGED:
        return _outcome(known)
    former = DepositStatus(known.reason or DepositStatus.CREDITED)
    if former == DepositStatus.CREDITED:
        _post_loss(bank, ctx, known.amount, is_recovered=True)
    reason = None if former in {DepositStatus.CREDITED, DepositStatus.CARRIED} else DepositStatus.REORGED
    place = {"block_number": cmd.block_number, "block_hash": cmd.block_hash, "log_index": cmd.log_index}
    return _outcome(_change(book, known, ctx, status=former, reason=reason, **place))


def _post_loss(bank: Book, ctx: Context, amount: int, *, is_recovered: bool) -> None:
    bank.begin(JournalKind.ADJUSTMENT, ctx, settles_on=ctx.business_date, business_date=bank.business_date)
    sides = bank.internal_account(AccountKind.LOSSES), bank.internal_account(AccountKind.RAIL_CRYPTO)
    bank.post(*(sides[::-1] if is_recovered else sides), amount)
    bank.close()


def _payment(cmd: CreditDeposit, cents: int) -> ReceiveMoney:
    deposit = cmd.deposit
    return ReceiveMoney(
        caller=cmd.caller,
        key=cmd.deposit_id,
        customers=cmd.customers,
        rail=Rail.CRYPTO,
        portal_id=cmd.portal_id,
        pocket_id=cmd.pocket_id,
        amount=cents,
        description=f"{deposit.asset} on {deposit.chain}",
        details=details_of(cmd.deposit_id, deposit),
    )


def details_of(deposit_id: UUID, deposit: ChainDeposit) -> dict[str, Any]:
    """Return what the transaction of a deposit says of it."""
    shown = {name: getattr(deposit, name) for name in ("chain", "asset", "tx_hash", "sender")}
    return {"crypto_transfer_id": str(deposit_id), "wallet_address": deposit.recipient, **shown}


def _add(book: Book, cmd: ArrivedDeposit, ctx: Context, **columns: Any) -> CryptoDepositRow:
    fields = msgspec.structs.asdict(cmd.deposit) | {"created_at": ctx.now, "updated_at": ctx.now} | columns
    del fields["minimum_cents"]
    fields |= {name: getattr(cmd, name) for name in ("deposit_id", "portal_id", "pocket_id")}
    row = CryptoDepositRow(customer_id=cmd.customers[0], **fields)
    book.draft.add(row)
    return _keep(book, row, row.carried)


def _change(book: Book, known: CryptoDepositRow, ctx: Context, **columns: Any) -> CryptoDepositRow:
    row = msgspec.structs.replace(known, updated_at=ctx.now, **columns)
    book.change(CryptoDepositRow, row.deposit_id, updated_at=ctx.now, **columns)
    return _keep(book, row, row.carried - known.carried)


def _keep(book: Book, row: CryptoDepositRow, units: int) -> CryptoDepositRow:
    """Keep a row for later commands, and count the units that it brought, or took, for the next one of its portal."""
    book.keep_fingerprint(row)
    book.put(book.referenced, row.deposit_id, row)
    by_token = dict(_carried(book, row.portal_id))
    by_token[row.token] = by_token.get(row.token, 0) + units
    book.put(book.referenced, row.portal_id, CarriedUnits(by_token))
    return row


def _carried(book: Book, portal_id: UUID) -> dict[str, int]:
    found = book.referenced.get(portal_id)
    return found.by_token if isinstance(found, CarriedUnits) else {}


def _known(book: Book, deposit_id: UUID) -> CryptoDepositRow:
    found = book.referenced.get(deposit_id)
    if not isinstance(found, CryptoDepositRow):
        raise NotFound
    return found


def _outcome(row: CryptoDepositRow) -> Outcome:
    return {"deposit_id": str(row.deposit_id), "status": row.status, "amount": row.amount}
