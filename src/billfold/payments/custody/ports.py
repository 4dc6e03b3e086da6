"""The custodian that keeps our customers' bills: it delivers them elsewhere when we say so."""

from typing import Protocol
from uuid import UUID

import msgspec


class DeliveryOrder(msgspec.Struct, frozen=True, kw_only=True):
    """Bills to be delivered free of payment. `units` of $100 face; asked again it is the same."""

    transfer_id: UUID
    cusip: str
    units: int
    counterparty_name: str
    counterparty_account: str


class DeliveryResult(msgspec.Struct, frozen=True, kw_only=True):
    """What became of an order. `refused` says why the other side did not take the bills."""

    refused: str | None = None


class Custodian(Protocol):
    """Whoever keeps the bills."""

    async def deliver(self, order: DeliveryOrder) -> DeliveryResult:
        """Deliver once, however often asked. Raises Unavailable while nobody answers."""
