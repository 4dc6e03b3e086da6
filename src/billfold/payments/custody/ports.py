"""The port to the custodian that holds our customers' bills and delivers them to others."""

from typing import Protocol, runtime_checkable

from billfold.payments.custody.types import SecurityTransfer


@runtime_checkable
class Custodian(Protocol):
    """The custodian."""

    async def deliver(self, transfer: SecurityTransfer) -> str | None:
        """Deliver bills, free of payment; return the reason if the other side rejects them.

        Idempotent by the transfer's id. Raises Unavailable if the custodian does not answer.
        """
