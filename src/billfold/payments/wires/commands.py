"""Commands on wires. `references` names the wire, or the counterparty of a new one."""

from datetime import datetime
from enum import StrEnum
from typing import NamedTuple
from uuid import UUID

import msgspec
from typing_extensions import override

from billfold.accounts.holds.commands import Payment
from billfold.ledger.book.notes import TRANSFER
from billfold.ledger.commands import AuditedAction, Command, Reference
from billfold.platform.database.rows import Row


class WireDirection(StrEnum):
    """The direction from the bank's point of view."""

    INCOMING = "INCOMING"
    OUTGOING = "OUTGOING"


class WireType(StrEnum):
    """A payment, the reversal of a rejected one, or a return."""

    PAYMENT = "PAYMENT"
    REVERSAL = "REVERSAL"
    RETURN = "RETURN"


class WireStatus(StrEnum):
    """The status of a wire."""

    PENDING = "PENDING"
    PROCESSING = "PROCESSING"
    COMPLETED = "COMPLETED"
    REJECTED = "REJECTED"


class WireRow(Row, frozen=True, kw_only=True):
    """A wire as stored. `request` and `message` are JSON text; `fee` and `amount` are cents.

    `reason` is that of a rejection, or of a PENDING wire that is due and has not left.

    `entry_no` is its journal entry; None if no money moved.
    """

    table = "wire"
    key_column = "wire_id"
    fingerprinted = True
    keeps_former = ("status", "reason", "imad", "omad", "settled_at", "updated_at")
    changing = frozenset(keeps_former)

    customer_id: UUID
    wire_id: UUID
    partner_id: UUID
    pocket_id: UUID
    portal_id: UUID | None = None
    direction: WireDirection
    wire_type: WireType
    original_wire_id: UUID | None = None
    status: WireStatus
    reason: str | None = None
    amount: int
    fee: int = 0
    counterparty_id: UUID | None = None
    counterparty_name: str
    reference_number: str
    uetr: str
    imad: str | None = None
    omad: str | None = None
    description: str | None = None
    wire_instructions: str | None = None
    end_to_end_identification: str | None = None
    created_by: str | None = None
    request: str = "{}"
    message: str | None = None
    transaction_id: UUID | None = None
    entry_no: int | None = None
    send_at: datetime | None = None
    created_at: datetime
    settled_at: datetime | None = None
    updated_at: datetime

    @property
    def is_open(self) -> bool:
        """True if it is still to be settled by the network, or rejected."""
        in_process = self.status in {WireStatus.PENDING, WireStatus.PROCESSING}
        return in_process and self.direction == WireDirection.OUTGOING

    @property
    @override
    def lasting(self) -> tuple[object, ...]:
        # An incoming wire has the IMAD of its sender; an outgoing one gets it when its message is numbered.
        return (*super().lasting, self.imad if self.direction == WireDirection.INCOMING else None)


class ReferencedWire(NamedTuple):
    """A wire as a rule sees it.

    `outstanding` are the cents that have not been returned. `booked_journal_no` is the latest journal entry
    that booked its money: its own, or the reversal of a rejected return. `is_in_file` tells whether its payment
    message is in a file: from then on it leaves, whatever its status says yet.
    """

    row: WireRow
    outstanding: int
    booked_journal_no: int | None
    is_in_file: bool = False


class IncomingWireFields(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of the message of an incoming wire. `message` is its JSON text, `imad` its number.

    `original_wire_id` is set for the return of a wire that we sent.
    """

    uetr: str
    imad: str
    omad: str | None
    sender_name: str
    reference_number: str
    instructions: str | None
    end_to_end: str | None
    message: str | None
    original_wire_id: UUID | None = None


class QueuedMessage(Row, frozen=True, kw_only=True):
    """A queued message. `terms` is the JSON text of its content (`rules.messages`)."""

    table = "wire_message"
    key_column = "message_id"
    fingerprinted = True
    changing = frozenset({"send_at"})
    # Recalls and their answers, and the bank's own returns, move no customer's money.
    proof_needed = "t.kind LIKE 'pacs.%' AND t.customer_id <> (SELECT bank_customer_id FROM bank)"

    message_id: UUID
    customer_id: UUID
    wire_id: UUID
    kind: str
    send_at: datetime
    terms: str


class SendWire(Payment, frozen=True, kw_only=True):
    """Pay `amount` cents (None: the whole balance, net of fees) to a counterparty by wire, up to `at_most`.

    With `keep` it pays what the pocket can pay above so many cents and the fee. `wire_instructions` override the
    counterparty's, sealed as those are; `request` is the JSON text of the request. If the wire was `approved` before, a
    refusal raises `wire.rejected` and becomes the outcome.
    """

    reference_kinds = (Reference.COUNTERPARTY,)
    notes_on = (TRANSFER, "wire_id")

    wire_id: UUID | None
    pocket_id: UUID
    amount: int | None
    at_most: int | None = None
    keep: int | None = None
    counterparty_id: UUID
    description: str | None = None
    wire_instructions: str | None = None
    end_to_end_identification: str | None = None
    created_by: str | None = None
    unverified_wires: bool = False
    approved: bool = False
    request: str = "{}"


class WireCommand(Command, frozen=True, kw_only=True):
    """A command on a recorded wire."""

    reference_kinds = (Reference.WIRE,)


class SubmitWire(WireCommand, frozen=True, kw_only=True):
    """Record that the message is in a file, with this IMAD."""

    wire_id: UUID
    imad: str


WAITING_FOR_FUNDS, RELEASED = "WAITING_FOR_FUNDS", "RELEASED"
"""The reasons of a PENDING wire that is due: it waits for money of the bank, or two people let it go without."""


class HoldWire(WireCommand, frozen=True, kw_only=True):
    """Let a due wire wait for funds of the bank."""

    wire_id: UUID


class ReleaseWire(WireCommand, frozen=True, kw_only=True):
    """Let a wire that waits leave, although the reserve falls below its floor."""

    audit = AuditedAction("wire", "released", fields=("wire_id",))

    wire_id: UUID


class CompleteWire(WireCommand, frozen=True, kw_only=True):
    """Record that Fedwire has settled the wire."""

    wire_id: UUID
    omad: str | None = None


class RejectWire(WireCommand, frozen=True, kw_only=True):
    """Record that Fedwire or a bank has rejected the wire, with its ISO 20022 reason code."""

    wire_id: UUID
    code: str | None


class CancelWire(WireCommand, frozen=True, kw_only=True):
    """Cancel the wire before its message is in a file."""

    audit = AuditedAction("wire", "cancelled", fields=("wire_id",))

    wire_id: UUID


class ReturnWire(WireCommand, frozen=True, kw_only=True):
    """Return the received wire `original_id`. `code` is an ISO 20022 return reason."""

    former_names = ("PayBackWire",)
    audit = AuditedAction("wire", "returned", fields=("original_id", "code"))

    original_id: UUID
    code: str
    information: str | None = None


class ReceiveWireReturn(WireCommand, frozen=True, kw_only=True):
    """Receive the return of the sent wire `original_id`.

    `wire_id` is the id of the return. `amount` is the returned amount, `charges` the deductions by banks
    on its way. `code` is the ISO 20022 return reason, `message` the JSON text of the message.
    """

    former_names = ("TakeBackWire",)

    wire_id: UUID
    original_id: UUID
    amount: int
    code: str
    information: str | None
    imad: str
    omad: str | None
    message: str
    charges: int = 0
