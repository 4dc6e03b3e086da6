"""Instructions to the custodian, and confirmations that differ from them.

Units are bills to receive and money is cents to pay; both are negative for sales and redemptions.
"""

from datetime import date, datetime
from enum import StrEnum
from hashlib import sha256
from typing import Final
from uuid import UUID

import msgspec

from billfold.ledger.types import EventKind
from billfold.platform.database.rows import Row
from billfold.platform.ids import command_id


class InstructionStatus(StrEnum):
    """The state of an instruction. One that was REJECTED is sent again by a person, or its trade is busted."""

    NEW = "NEW"
    SENT = "SENT"
    MATCHED = "MATCHED"
    PENDING = "PENDING"
    FAILING = "FAILING"
    REJECTED = "REJECTED"
    CANCELLING = "CANCELLING"
    CANCELLED = "CANCELLED"
    SETTLED = "SETTLED"


_S = InstructionStatus
CLOSED: Final = frozenset({_S.CANCELLED, _S.SETTLED})
AT_CUSTODIAN: Final = frozenset({_S.SENT, _S.MATCHED, _S.PENDING, _S.FAILING})
"""States in which the custodian has an instruction and can cancel it."""


class SettlementInstruction(Row, frozen=True, kw_only=True):
    """An instruction as stored. `counterparty` is the kind of the account that it settles.

    Attempt 0 is of an execution of before there were instructions (migration 0007).
    """

    table = "settlement_instruction"
    key_column = "instruction_id"
    noun = "instruction"
    fingerprinted = True
    proof_needed = "t.attempt > 0"

    customer_id: UUID
    instruction_id: UUID
    execution_id: UUID | None = None
    counterparty: str
    cusip: str
    units: int
    money: int
    settles_on: date
    status: InstructionStatus = InstructionStatus.NEW
    status_reason: str | None = None
    attempt: int = 1
    withdrawn: bool = False
    settled_units: int = 0
    settled_money: int = 0
    created_at: datetime
    updated_at: datetime

    @property
    def open_units(self) -> int:
        """The units that are not confirmed."""
        return self.units - self.settled_units

    @property
    def open_money(self) -> int:
        """The cents that are not confirmed."""
        return self.money - self.settled_money

    @property
    def dealer(self) -> str:
        """The name of the dealer, or `redemptions`."""
        return self.counterparty.removeprefix("dealer:")

    @property
    def is_redemption(self) -> bool:
        """Tell whether the custodian redeems bills; nothing is sent for that."""
        return self.counterparty == REDEMPTIONS


REDEMPTIONS: Final = "redemptions"
"""The counterparty of redemptions."""


def instruction_id_of(execution_id: UUID) -> UUID:
    """Return the id of the instruction that settles an execution."""
    return UUID(bytes=sha256(execution_id.bytes).digest()[:16])  # migration 0007 derives it too


def redemption_id_of(cusip: str) -> UUID:
    """Return the id of the redemption of a bill."""
    return command_id("redemption", cusip)


class DifferenceStatus(StrEnum):
    """The decision of two people about a confirmation that differs."""

    HELD = "HELD"
    ACCEPTED = "ACCEPTED"
    DISMISSED = "DISMISSED"


class SettlementDifference(Row, frozen=True, kw_only=True):
    """A confirmation that is not booked, with the reason."""

    table = "settlement_difference"
    key_column = "difference_id"
    noun = "difference"
    fingerprinted = True

    customer_id: UUID
    difference_id: UUID
    instruction_id: UUID
    cusip: str
    units: int
    money: int
    settled_on: date
    reason: str
    status: DifferenceStatus = DifferenceStatus.HELD
    held_at: datetime
    decided_at: datetime | None = None


class InstructionPayload(msgspec.Struct, frozen=True, kw_only=True):
    """An instruction and its state, for operators."""

    instruction_id: UUID
    counterparty: str
    cusip: str
    units: int
    money: int
    settled_units: int
    reason: str | None = None


_INSTRUCTION = InstructionPayload(
    instruction_id=UUID(int=0), counterparty="dealer:x", cusip="912797PT8", units=100, money=99_000_00, settled_units=0
)
INSTRUCTION_EVENTS: Final = {
    each: EventKind(f"settlement.{each.lower()}", f"An instruction to the custodian became {each}.", _INSTRUCTION)
    for each in InstructionStatus
}
DIFFERENCE_EVENT: Final = EventKind(
    "settlement.differs", "The custodian confirmed what was not instructed.", _INSTRUCTION
)
"""Events of the bank's own log. No API shows them: operators read them in the console."""
