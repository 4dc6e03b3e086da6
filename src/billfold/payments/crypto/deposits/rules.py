"""Final deposits are credited or carried: units that do not make a minimum are carried, and booked with later ones."""

from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple
from uuid import UUID

import msgspec

from billfold.ledger.book.book import Book
from billfold.ledger.commands import AuditedAction, Books, Command, Outcome, Reference, book_of, decides
from billfold.ledger.context import Context
from billfold.ledger.types import AccountKind, JournalKind, Rail
from billfold.payments.crypto.chains import cents_of, units_of
from billfold.payments.deposits.rules import ReceiveMoney, receive_money
from billfold.platform.database.rows import Row
from billfold.platform.errors import NotFound, Refused
from billfold.platform.ids import command_id


class DepositStatus(StrEnum):
    """CARRIED: booked with a later deposit. HELD: in suspense.

    QUESTIONED: nothing is booked until an operator releases it. REORGED: `reason` is the status before.
    """

    CREDITED = "CREDITED"
    CARRIED = "CARRIED"
    HELD = "HELD"
    QUESTIONED = "QUESTIONED"
    REORGED = "REORGED"


class HoldReason(StrEnum):
    """The reason why a deposit is not credited automatically."""

    PORTAL_CLOSED = "PORTAL_CLOSED"
    OTHER_CHAIN = "OTHER_CHAIN"
    SENDER_LISTED = "SENDER_LISTED"
    BALANCE_DIFFERS = "BALANCE_DIFFERS"
    BALANCE_UNKNOWN = "BALANCE_UNKNOWN"
    AMOUNT_TOO_LARGE = "AMOUNT_TOO_LARGE"
    OWN_ADDRESS = "OWN_ADDRESS"
    REORGED = "REORGED"


class ChainDeposit(msgspec.Struct, frozen=True, kw_only=True):
    """A final transfer to a portal as on the chain. `minimum_cents` is the smallest amount that is credited."""

    chain: str
    tx_hash: str
    log_index: int
    block_number: int
    block_hash: str
    token: str
    asset: str
    decimals: int
    minimum_cents: int
    sender: str
    recipient: str
    units: str


class CryptoDepositRow(Row, frozen=True, kw_only=True):
    """A deposit: `amount` cents are booked from it and from units carried before."""

    table = "crypto_deposit"
    key_column = "deposit_id"
    fingerprinted = True
    changing = frozenset({"created_at", "updated_at"})

    customer_id: UUID
    deposit_id: UUID
    portal_id: UUID
    pocket_id: UUID
    chain: str
    tx_hash: str
    log_index: int
    block_number: int
    block_hash: str
    token: str
    asset: str
    decimals: int
    sender: str
    recipient: str
    units: str
    amount: int
    status: DepositStatus
    reason: str | None
    created_at: datetime
    updated_at: datetime

    @property
    def carried(self) -> int:
        """Units that it brought and that are not booked; below 0 if it booked units of earlier deposits.

        Units of earlier deposits that it booked stay booked when its block is replaced.
        """
        unbooked = int(self.units) - units_of(self.amount, self.decimals)
        if self.status == DepositStatus.QUESTIONED:
            return 0
        return min(unbooked, 0) if self.status == DepositStatus.REORGED else unbooked

    @property
    def item_id(self) -> UUID:
        """The item of suspense that holds it; a new one if it was written off and has returned."""
        if self.reason != HoldReason.REORGED:
            return self.deposit_id
        return command_id(f"crypto-held:{self.block_hash}", self.deposit_id)


class CarriedUnits(NamedTuple):
    """Units per token of one portal that arrived and are not booked."""

    by_token: dict[str, int]


class DepositCommand(Command, frozen=True, kw_only=True):
    """A command on a deposit. References the deposit, and the portal of a new one."""

    needs_identifiers = True
    reference_kinds = (Reference.CRYPTO_DEPOSIT,)

    deposit_id: UUID


class ArrivedDeposit(DepositCommand, frozen=True, kw_only=True):
    """A command on a final deposit."""

    portal_id: UUID
    pocket_id: UUID
    deposit: ChainDeposit


class CreditDeposit(ArrivedDeposit, frozen=True, kw_only=True):
    """Credit a deposit, or carry it below the minimum.

    `is_released` is set when an operator releases a QUESTIONED one.
    """

    audit = AuditedAction("crypto_deposit", "released", fields=("deposit_id",))

    is_released: bool = False


class RecordUnbooked(ArrivedDeposit, frozen=True, kw_only=True):
    """Record a deposit that is not credited: in suspense with `amount` cents, or QUESTIONED with none."""

    amount: int
    reason: HoldReason


class WriteOffDeposit(DepositCommand, frozen=True, kw_only=True):
    """Write off a deposit whose block is no longer on the chain, at the bank's cost. `customers` are owner and bank.

    `is_released` means that the deposit was held, and released by an operator.
    """

    is_released: bool = False


class RestoreDeposit(DepositCommand, frozen=True, kw_only=True):
    """Restore a written-off deposit that is on the chain again, in this block. `customers` are owner and bank."""

    block_number: int
    block_hash: str
    log_index: int


UNAVAILABLE = "UNAVAILABLE"
"""The outcome of a credit to a portal that cannot accept it, or not this amount."""
CENTS_MAX = 999_999_999_999
"""The maximum of one deposit, as for a wire, because a token can mint any number of units."""


@decides(CreditDeposit)
def credit_deposit(books: Books, cmd: CreditDeposit, ctx: Context) -> Outcome:
    """Credit a deposit with the carried units. Refuses: suspense-item-settled when an operator releases it twice."""
    book = book_of(books, cmd.customers[0])
    known = book.referenced.get(cmd.deposit_id)
    if isinstance(known, CryptoDepositRow) and not (cmd.is_released and known.status == DepositStatus.QUESTIONED):
        if cmd.is_released:
            raise Refused("suspense-item-settled", f"The deposit is {known.status} already.")
        return _outcome(known)
    token, units = cmd.deposit.token, int(cmd.deposit.units)
    carried = _carried_units(book, cmd.portal_id).get(token, 0)
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
        row = _change_deposit(book, known, ctx, status=status, amount=amount)
    else:
        row = _add_deposit(book, cmd, ctx, status=status, amount=amount, reason=None)
    return _outcome(row) | {name: arrived[name] for name in ("transaction_id",) if name in arrived}


@decides(RecordUnbooked)
def record_unbooked(books: Books, cmd: RecordUnbooked, ctx: Context) -> Outcome:
    """Record a deposit that another command holds in suspense, or of which nothing is booked."""
    book = book_of(books, cmd.customers[0])
    known = book.referenced.get(cmd.deposit_id)
    if isinstance(known, CryptoDepositRow):
        return _outcome(known)
    status = DepositStatus.HELD if cmd.amount else DepositStatus.QUESTIONED
    return _outcome(_add_deposit(book, cmd, ctx, status=status, amount=cmd.amount, reason=cmd.reason))


@decides(WriteOffDeposit)
def write_off_deposit(books: Books, cmd: WriteOffDeposit, ctx: Context) -> Outcome:
    """Post the credited amount to the bank's losses: the customer keeps it, and the rail will not deliver it."""
    book, bank = book_of(books, cmd.customers[0]), book_of(books, cmd.customers[1])
    known = _known_deposit(book, cmd.deposit_id)
    if known.status == DepositStatus.REORGED:
        return _outcome(known)
    former = DepositStatus.CREDITED if cmd.is_released else known.status
    if former == DepositStatus.CREDITED:
        _post_loss(bank, ctx, known.amount, is_recovered=False)
    return _outcome(_change_deposit(book, known, ctx, status=DepositStatus.REORGED, reason=former))


@decides(RestoreDeposit)
def restore_deposit(books: Books, cmd: RestoreDeposit, ctx: Context) -> Outcome:
    """Reverse the loss: the deposit is on the chain again, with its previous status."""
    book, bank = book_of(books, cmd.customers[0]), book_of(books, cmd.customers[1])
    known = _known_deposit(book, cmd.deposit_id)
    if known.status != DepositStatus.REORGED:
        return _outcome(known)
    former = DepositStatus(known.reason or DepositStatus.CREDITED)
    if former == DepositStatus.CREDITED:
        _post_loss(bank, ctx, known.amount, is_recovered=True)
    reason = None if former in {DepositStatus.CREDITED, DepositStatus.CARRIED} else DepositStatus.REORGED
    place = {"block_number": cmd.block_number, "block_hash": cmd.block_hash, "log_index": cmd.log_index}
    return _outcome(_change_deposit(book, known, ctx, status=former, reason=reason, **place))


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
    """Return the details for the transaction of a deposit."""
    shown = {name: getattr(deposit, name) for name in ("chain", "asset", "tx_hash", "sender")}
    return {"crypto_transfer_id": str(deposit_id), "wallet_address": deposit.recipient, **shown}


def _add_deposit(book: Book, cmd: ArrivedDeposit, ctx: Context, **columns: Any) -> CryptoDepositRow:
    fields = msgspec.structs.asdict(cmd.deposit) | {"created_at": ctx.now, "updated_at": ctx.now} | columns
    del fields["minimum_cents"]
    fields |= {name: getattr(cmd, name) for name in ("deposit_id", "portal_id", "pocket_id")}
    row = CryptoDepositRow(customer_id=cmd.customers[0], **fields)
    book.draft.add(row)
    return _store_deposit(book, row, row.carried)


def _change_deposit(book: Book, known: CryptoDepositRow, ctx: Context, **columns: Any) -> CryptoDepositRow:
    row = msgspec.structs.replace(known, updated_at=ctx.now, **columns)
    book.change(CryptoDepositRow, row.deposit_id, updated_at=ctx.now, **columns)
    return _store_deposit(book, row, row.carried - known.carried)


def _store_deposit(book: Book, row: CryptoDepositRow, units: int) -> CryptoDepositRow:
    """Store a row for later commands of the batch, and update the carried units of its portal."""
    book.keep_fingerprint(row)
    book.put(book.referenced, row.deposit_id, row)
    by_token = dict(_carried_units(book, row.portal_id))
    by_token[row.token] = by_token.get(row.token, 0) + units
    book.put(book.referenced, row.portal_id, CarriedUnits(by_token))
    return row


def _carried_units(book: Book, portal_id: UUID) -> dict[str, int]:
    found = book.referenced.get(portal_id)
    return found.by_token if isinstance(found, CarriedUnits) else {}


def _known_deposit(book: Book, deposit_id: UUID) -> CryptoDepositRow:
    found = book.referenced.get(deposit_id)
    if not isinstance(found, CryptoDepositRow):
        raise NotFound
    return found


def _outcome(row: CryptoDepositRow) -> Outcome:
    return {"deposit_id": str(row.deposit_id), "status": row.status, "amount": row.amount}
