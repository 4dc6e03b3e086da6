"""The command of a transfer between two pockets of the bank."""

from datetime import datetime
from enum import StrEnum
from typing import Literal, NamedTuple
from uuid import UUID

import msgspec
from typing_extensions import override

from billfold.accounts.holds.commands import Payment
from billfold.ledger.book.book import Book
from billfold.ledger.book.notes import TRANSFER
from billfold.ledger.commands import Reference
from billfold.platform.database.rows import Row


class TransferStatus(StrEnum):
    """The status of an on-us transfer."""

    PENDING = "PENDING"
    COMPLETED = "COMPLETED"
    REJECTED = "REJECTED"


class PendingTransfer(NamedTuple):
    """A recorded transfer that is not executed yet."""

    from_pocket_id: UUID
    to_pocket_id: UUID | None

    def touches(self, pocket_id: UUID) -> bool:
        """Return whether it moves money of this pocket."""
        return pocket_id in self


class TransferOrder(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The order of the payer. Stored as JSON under these names. `reverses` is the transfer that it pays back.

    `content_hash` is the SHA-256 of the request that created it, in hexadecimal: the same
    transfer id with another content is refused.
    """

    counterparty_id: UUID | None = None
    transfer_type: Literal["BANK_TRANSFER", "SECURITY_TRANSFER"] | None = None
    description: str | None = None
    end_to_end_identification: str | None = None
    source: str | None = None
    target: str | None = None
    async_mode: bool = False
    content_hash: str = ""
    hold_id: UUID | None = None
    reverses: UUID | None = None

    @property
    def referenced(self) -> tuple[UUID, ...]:
        """Return the ids that the order references in addition to its Pockets."""
        return tuple(each for each in (self.counterparty_id, self.hold_id, self.reverses) if each is not None)

    @property
    def in_kind(self) -> bool:
        """Return whether bills are moved instead of money."""
        return self.transfer_type == "SECURITY_TRANSFER"


class OnUsTransferRow(Row, frozen=True):
    """A transfer as stored; `request` is the JSON text of its order."""

    table = "transfer"
    key_column = "transfer_id"
    keeps_former = ("status", "reason", "amount")

    customer_id: UUID
    transfer_id: UUID
    partner_id: UUID
    type: str
    status: TransferStatus
    reason: str | None
    from_pocket_id: UUID
    to_pocket_id: UUID | None
    amount: int
    request: str
    created_at: datetime
    reverses_id: UUID | None


class TransferRow(OnUsTransferRow, frozen=True):
    """A transfer as queried: `payee_id` is the customer of the receiving pocket."""

    payee_id: UUID | None
    order: TransferOrder


_BACK = {
    "PARTNER_CUSTOMER_FUNDING": "PARTNER_CUSTOMER_DEFUNDING",
    "PARTNER_CUSTOMER_DEFUNDING": "PARTNER_CUSTOMER_FUNDING",
}


def type_of_reversal(transfer: OnUsTransferRow) -> str:
    """Return the type of the transfer that goes the other way."""
    return _BACK.get(transfer.type, transfer.type)


class TransferOnUs(Payment, frozen=True, kw_only=True):
    """Move `amount` cents (None: the whole balance, net of fees) between two pockets of the bank, up to `at_most`.

    `customers` is (payer,) or (payer, payee). With `later` the transfer is only recorded, and a
    second command with `accepted` executes it. `addresses` are the network addresses of the two
    pockets; a counterparty that no longer accepts payments has none, and is not paid. If the
    transfer was `approved` before, it is executed at once, and a refusal makes it REJECTED. With `keep` it moves
    what the payer can pay above so many cents, with `top_up_to` what the receiving pocket lacks to be able to pay them.
    """

    reference_kinds = (Reference.COUNTERPARTY,)
    notes_on = (TRANSFER, "transfer_id")

    transfer_id: UUID | None
    type: str
    from_pocket_id: UUID
    to_pocket_id: UUID | None
    amount: int | None
    at_most: int | None = None
    keep: int | None = None
    top_up_to: int | None = None
    partner_id: UUID
    order: TransferOrder = TransferOrder()
    addresses: tuple[str | None, str | None] = (None, None)
    later: bool = False
    approved: bool = False
    accepted: bool = False

    @override
    def bound(self, book: Book, now: datetime) -> tuple[str, ...]:
        """Return also the Pocket that is paid: a payee may move its network address to another."""
        return (*super().bound(book, now), str(self.to_pocket_id))

    @property
    @override
    def reads(self) -> tuple[Reference, ...]:
        return super().reads if self.order.reverses is None else (*super().reads, Reference.ON_US_TRANSFER)
