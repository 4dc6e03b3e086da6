"""Money that a rail delivers."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from billfold.domain.counterparties.rules import Account
from billfold.domain.counterparties.types import CounterpartyRow
from billfold.domain.ledger.types import Rail
from billfold.domain.wires.types import Arrived, QueuedMessage, WireRow
from billfold.flows.command import Command
from billfold.flows.receive import receive_money


class ReceiveMoney(Command, frozen=True, kw_only=True):
    """A credit that a rail delivered to a portal. `amount` in cents; `details` per variant.

    A wire that came by a message says so in `wire`; its id is then the key.
    """

    rule = receive_money
    fingerprints = (WireRow, QueuedMessage, CounterpartyRow)

    rail: Rail
    portal_id: UUID
    pocket_id: UUID
    amount: int
    description: str
    details: dict[str, Any]
    remittance: dict[str, Any] | None = None
    wire: Arrived | None = None
    sender: Account | None = None
    """The account from which a wire came, where its bank says so."""
