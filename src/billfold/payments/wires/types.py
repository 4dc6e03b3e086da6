"""A wire as it is stored and as flows look at it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from enum import StrEnum
from operator import attrgetter
from typing import NamedTuple
from uuid import UUID

import msgspec

from billfold.platform.crypto import fingerprint
from billfold.platform.database.rows import Row


class WireDirection(StrEnum):
    """As the bank sees it."""

    INCOMING = "INCOMING"
    OUTGOING = "OUTGOING"


class WireType(StrEnum):
    """A payment, its reversal when it was rejected, or its return."""

    PAYMENT = "PAYMENT"
    REVERSAL = "REVERSAL"
    RETURN = "RETURN"


class WireStatus(StrEnum):
    """Where a wire stands."""

    PENDING = "PENDING"
    PROCESSING = "PROCESSING"
    COMPLETED = "COMPLETED"
    REJECTED = "REJECTED"


class WireRow(Row, frozen=True, kw_only=True):
    """A wire as stored. `request` and `message` are JSON text; `fee` and `amount` are cents.

    `journal_no` is where it is booked; None when no money moved.
    """

    table = "wire"
    key_column = "wire_id"

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
    journal_no: int | None = None
    send_at: datetime | None = None
    created_at: datetime
    settled_at: datetime | None = None
    updated_at: datetime

    @property
    def proof(self) -> str:
        """The fingerprint of what stays as it is, whatever becomes of the wire."""
        # The number of an incoming one is its sender's; an outgoing one has its message's.
        return fingerprint((*_immutable_values(self), self.imad if self.direction == WireDirection.INCOMING else None))


_MUTABLE_FIELDS = frozenset({"status", "reason", "imad", "omad", "settled_at", "updated_at"})
_immutable_values: Callable[[WireRow], tuple[object, ...]] = attrgetter(
    *(name for name in WireRow.__struct_fields__ if name not in _MUTABLE_FIELDS)
)


class ReferencedWire(NamedTuple):
    """A wire as a flow looks at it.

    `returned`: a return of it has been booked and stands. `stands_in` is the journal in which its
    money came last: its own, or the one that undid a return which was rejected.
    """

    row: WireRow
    returned: bool
    booked_journal_no: int | None


class IncomingWireFields(msgspec.Struct, frozen=True, kw_only=True):
    """What the message that brought a wire said. `message` is its JSON text, `imad` its number.

    With an `original_wire_id` it is a wire of ours that comes back.
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
    """A message that waits to be sent. `terms` is the JSON text of what it says (`messages`)."""

    table = "wire_message"

    message_id: UUID
    customer_id: UUID
    wire_id: UUID
    kind: str
    send_at: datetime
    terms: str

    @property
    def proof(self) -> str:
        """The fingerprint of what stays as it is, whenever it is sent."""
        return fingerprint((self.message_id, self.customer_id, self.wire_id, self.kind, self.terms))
