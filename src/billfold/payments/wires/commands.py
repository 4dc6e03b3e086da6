"""What may be asked of wires."""

from __future__ import annotations

from uuid import UUID

from billfold.ledger.commands import AuditedAction, Command, Reference
from billfold.payments.wires.rules.receive_return import receive_wire_return
from billfold.payments.wires.rules.return_wire import return_wire
from billfold.payments.wires.rules.send import send_wire
from billfold.payments.wires.rules.status import complete_wire, reject_wire, submit_wire
from billfold.payments.wires.types import QueuedMessage, WireRow


class SendWire(Command, frozen=True, kw_only=True):
    """Pay `amount` cents (None: everything, net of fees) to a counterparty by wire.

    `references` names the counterparty. `wire_instructions` override the counterparty's;
    `request` is the JSON text of what was asked for. One that was `approved` is answered where
    it would be refused.
    """

    rule = send_wire
    reference_kinds = (Reference.COUNTERPARTY,)
    fingerprints = (WireRow, QueuedMessage)
    needs_identifiers = False

    wire_id: UUID | None
    pocket_id: UUID
    amount: int | None
    counterparty_id: UUID
    description: str | None = None
    wire_instructions: str | None = None
    end_to_end_identification: str | None = None
    created_by: str | None = None
    unverified_wires: bool = False
    approved: bool = False
    request: str = "{}"


class SubmitWire(Command, frozen=True, kw_only=True):
    """The message has been written into a file under this number. `references` names the wire."""

    rule = submit_wire
    reference_kinds = (Reference.WIRE,)
    needs_identifiers = False

    wire_id: UUID
    imad: str


class CompleteWire(Command, frozen=True, kw_only=True):
    """Fedwire has settled the wire. `references` names the wire."""

    rule = complete_wire
    reference_kinds = (Reference.WIRE,)
    needs_identifiers = False

    wire_id: UUID
    omad: str | None = None


class RejectWire(Command, frozen=True, kw_only=True):
    """The network or a bank on the way refuses the wire, for a code of ISO."""

    rule = reject_wire
    reference_kinds = (Reference.WIRE,)
    needs_identifiers = False

    wire_id: UUID
    code: str | None


class ReturnWire(Command, frozen=True, kw_only=True):
    """Return the wire `original_id`, which `references` names, for a reason of ISO."""

    rule = return_wire
    former_names = ("PayBackWire",)
    reference_kinds = (Reference.WIRE,)
    audit = AuditedAction("wire", "returned", fields=("original_id", "code"))
    fingerprints = (WireRow, QueuedMessage)
    needs_identifiers = False

    original_id: UUID
    code: str
    information: str | None = None


class ReceiveWireReturn(Command, frozen=True, kw_only=True):
    """A return has arrived for the wire `original_id`, which `references` names.

    `wire_id` is the return's own. `amount` is what came: banks on the way may have kept charges.
    `code` is the reason of ISO, `message` the JSON text of the message.
    """

    rule = receive_wire_return
    former_names = ("TakeBackWire",)
    reference_kinds = (Reference.WIRE,)
    fingerprints = (WireRow,)
    needs_identifiers = False

    wire_id: UUID
    original_id: UUID
    amount: int
    code: str
    information: str | None
    imad: str
    omad: str | None
    message: str
