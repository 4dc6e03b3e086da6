"""Commands on wires. `references` names the wire, or the counterparty of a new one."""

from uuid import UUID

from billfold.ledger.commands import AuditedAction, Command, Reference


class SendWire(Command, frozen=True, kw_only=True):
    """Pay `amount` cents (None: the whole balance, net of fees) to a counterparty by wire, `at_most` so many.

    `wire_instructions` override the counterparty's, sealed as those are; `request` is the JSON text of the request. If
    the wire was `approved` before, a refusal raises `wire.rejected` and becomes the outcome.
    """

    reference_kinds = (Reference.COUNTERPARTY,)
    needs_identifiers = False

    wire_id: UUID | None
    pocket_id: UUID
    amount: int | None
    at_most: int | None = None
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
    needs_identifiers = False


class SubmitWire(WireCommand, frozen=True, kw_only=True):
    """Record that the message is in a file, with this IMAD."""

    wire_id: UUID
    imad: str


class CompleteWire(WireCommand, frozen=True, kw_only=True):
    """Record that Fedwire has settled the wire."""

    wire_id: UUID
    omad: str | None = None


class RejectWire(WireCommand, frozen=True, kw_only=True):
    """Record that Fedwire or a bank has rejected the wire, with its ISO 20022 reason code."""

    wire_id: UUID
    code: str | None


class ReturnWire(WireCommand, frozen=True, kw_only=True):
    """Return the received wire `original_id`. `code` is an ISO 20022 return reason."""

    former_names = ("PayBackWire",)
    audit = AuditedAction("wire", "returned", fields=("original_id", "code"))

    original_id: UUID
    code: str
    information: str | None = None


class ReceiveWireReturn(WireCommand, frozen=True, kw_only=True):
    """Receive the return of the sent wire `original_id`.

    `wire_id` is the id of the return. `amount` is the returned amount, `charges` what banks
    deducted on its way. `code` is the ISO 20022 return reason, `message` the JSON text of the message.
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
