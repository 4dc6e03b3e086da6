"""The world outside a sandbox: what its operations let arrive at the bank."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

import msgspec

from billfold.payments.deposits.inbound import receive
from billfold.sandbox.simulated_bank import SimulatedBank

if TYPE_CHECKING:
    from billfold.ledger.bank import Bank
    from billfold.sandbox.ach.network import SimulatedAchNetwork
    from billfold.sandbox.wires.fedwire import SimulatedFedwire


class DestinationAccount(msgspec.Struct, frozen=True):
    """Where a payment is to arrive."""

    routing_number: str
    account_number: str


class Sender(msgspec.Struct, frozen=True):
    """Who sends it."""

    name: str
    account_number: str | None = None
    routing_number: str | None = None


class AchEntryOrder(msgspec.Struct, frozen=True, kw_only=True):
    """An ACH entry that is to reach us. `amount` in cents."""

    routing_number: str
    account_number: str
    amount: int
    is_debit: bool
    company_name: str
    sec_code: str
    description: str


class Simulation:
    """The world outside the bank, as far as it sends us money."""

    def __init__(self, seed: bytes, *, wires: SimulatedFedwire, ach: SimulatedAchNetwork) -> None:
        self.wires = wires
        self.ach = ach
        self._bank = SimulatedBank(seed)

    async def send_ach_credit(
        self, bank: Bank, ach_id: UUID, to: DestinationAccount, amount: int, company_name: str
    ) -> None:
        """Let an ACH credit arrive. The same id arrives once."""
        ach = self._bank.ach_credit(
            ach_id,
            routing_number=to.routing_number,
            account_number=to.account_number,
            amount=amount,
            company_name=company_name,
        )
        await receive(bank, ach)
