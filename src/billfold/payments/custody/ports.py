"""The port to the custodian that holds our customers' bills and delivers them to others."""

from typing import Protocol
from uuid import UUID

import msgspec


class DeliveryOrder(msgspec.Struct, frozen=True, kw_only=True):
    """A delivery order, free of payment. `units` of $100 face. Idempotent by its id."""

    transfer_id: UUID
    cusip: str
    units: int
    counterparty_name: str
    counterparty_account: str


class DeliveryResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of an order. `refused` is the reason why the other side rejected the bills."""

    refused: str | None = None


class Custodian(Protocol):
    """The custodian."""

    async def deliver(self, order: DeliveryOrder) -> DeliveryResult:
        """Deliver bills; idempotent. Raises Unavailable if the custodian does not answer."""
