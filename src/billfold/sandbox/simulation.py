"""What the sandbox's operations need of the simulated world; the wiring supplies it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol
from uuid import UUID

import msgspec

if TYPE_CHECKING:
    from billfold.ledger.bank import Bank


class DestinationAccount(msgspec.Struct, frozen=True):
    """Where a payment is to arrive."""

    routing_number: str
    account_number: str


class Sender(msgspec.Struct, frozen=True):
    """Who sends it."""

    name: str
    account_number: str | None = None
    routing_number: str | None = None


class WireSimulation(Protocol):
    """The other side of Fedwire. Each of its deeds reaches the bank as a file."""

    async def submit(self, bank: Bank, customer_id: UUID, wire_id: UUID) -> None:
        """Let the message of a wire go before its hour. Refuses: wire-not-pending."""

    async def settle(self, bank: Bank, customer_id: UUID, wire_id: UUID, code: str | None) -> None:
        """Let a wire settle, or be rejected for a code. Refuses: wire-not-processing."""

    async def give_back(
        self, bank: Bank, customer_id: UUID, wire_id: UUID, reason: str, information: str, charges: int = 0
    ) -> None:
        """Let a wire of ours come back, less charges of the banks on its way.

        Refuses: wire-not-completed, wire-already-returned. Raises InvalidInput when the charges
        are all of it.
        """

    async def ask_for(self, bank: Bank, customer_id: UUID, wire_id: UUID, reason: str) -> None:
        """Let the sender of a wire ask for it. Refuses: wire-not-completed."""


class AchEntryOrder(msgspec.Struct, frozen=True, kw_only=True):
    """An ACH entry that is to reach us. `amount` in cents."""

    routing_number: str
    account_number: str
    amount: int
    is_debit: bool
    company_name: str
    sec_code: str
    description: str


class Simulation(Protocol):
    """The world outside the bank, as far as it sends us money."""

    @property
    def wires(self) -> WireSimulation:
        """The other side of Fedwire."""

    async def send_wire(self, bank: Bank, wire_id: UUID, to: DestinationAccount, amount: int, sender: Sender) -> bool:
        """Let a wire arrive; tell whether it was booked. The same id arrives once."""

    async def send_ach_credit(
        self, bank: Bank, ach_id: UUID, to: DestinationAccount, amount: int, company_name: str
    ) -> bool:
        """Let an ACH credit arrive; tell whether it was booked. The same id arrives once."""

    async def send_ach_entry(self, bank: Bank, key: UUID, order: AchEntryOrder) -> None:
        """Let an ACH file with one entry arrive. The same key arrives once."""

    async def return_ach_entry(self, bank: Bank, key: UUID, ach_id: UUID, code: str) -> None:
        """Let an entry that we sent come back. Raises Refused when it has not gone."""

    async def change_ach_entry(self, bank: Bank, key: UUID, ach_id: UUID, code: str, corrected: str) -> None:
        """Let the other bank correct an entry that we sent. Raises Refused when it has not gone."""
