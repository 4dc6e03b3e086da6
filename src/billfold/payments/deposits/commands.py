"""The command that credits an incoming payment."""

from typing import Any
from uuid import UUID

from billfold.accounts.counterparties.rules.verification_kinds import Account
from billfold.ledger.commands import Command
from billfold.ledger.types import Rail
from billfold.payments.wires.types import IncomingWireFields


class ReceiveMoney(Command, frozen=True, kw_only=True):
    """Credit a payment that a rail delivered to a portal. `amount` in cents; `details` per rail.

    `wire` is set for a wire that came in a Fedwire message; the key is then the wire's id.
    """

    rail: Rail
    portal_id: UUID
    pocket_id: UUID
    amount: int
    description: str
    details: dict[str, Any]
    remittance: dict[str, Any] | None = None
    wire: IncomingWireFields | None = None
    sender: Account | None = None
    """The account that sent the wire, if the sending bank names it."""
