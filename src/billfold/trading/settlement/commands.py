"""Commands of the settlement with the custodian. Their customer is the bank itself."""

from datetime import date
from uuid import UUID

from billfold.ledger.commands import AuditedAction, Command, Reference
from billfold.trading.settlement.types import InstructionStatus


class ReportInstruction(Command, frozen=True, kw_only=True):
    """Record the state of an attempt at an instruction: sent, or what the custodian says; NEW sends it again."""

    reference_kinds = (Reference.SETTLEMENT_INSTRUCTION,)
    audit = AuditedAction("settlement", lambda command: command.status.lower(), fields=("instruction_id", "reason"))
    instruction_id: UUID
    attempt: int
    status: InstructionStatus
    reason: str | None = None


class ConfirmSettlement(Command, frozen=True, kw_only=True):
    """Book what the custodian settled, signed like its instruction. What differs from that is held.

    `custody_units` are the units of the bill at the custodian according to all books: a redemption is of no more.
    `message_no` is the custodian's number of the message, by which a repeated one is told apart.
    """

    reference_kinds = (Reference.SETTLEMENT_INSTRUCTION,)
    instruction_id: UUID
    attempt: int
    cusip: str
    units: int
    money: int
    settled_on: date
    message_no: str = ""
    custody_units: int = 0


class DecideDifference(Command, frozen=True, kw_only=True):
    """Book a held confirmation with its money and units, or dismiss it. `references` are its instruction and itself."""

    reference_kinds = (Reference.SETTLEMENT_INSTRUCTION, Reference.SETTLEMENT_DIFFERENCE)
    audit = AuditedAction(
        "settlement", lambda command: "accepted" if command.accept else "dismissed", ("difference_id",)
    )
    difference_id: UUID
    accept: bool
