"""A custodian that exists only in the sandbox: it completes every delivery at once."""

import structlog

from billfold.payments.custody.types import SecurityTransfer

log = structlog.get_logger(__name__)

REFUSE_MARK = "REFUSE"
"""A counterparty with this word in its name takes no bills."""


class SimulatedCustodian:
    """Answers by the name of whoever is to get the bills, so the same order has one answer."""

    async def deliver(self, transfer: SecurityTransfer) -> str | None:
        """Deliver, or return that the other side does not know the account."""
        if REFUSE_MARK in transfer.counterparty_name.upper():
            return "ACCOUNT_UNAVAILABLE"
        log.info("bills_delivered", cusip=transfer.cusip, units=transfer.units)
        return None
