"""A correspondent bank that exists only in the sandbox: it sends what it is asked to send.

Every number of a payment is derived from the payment's own id, so a payment that is asked for
again under the same id is the same to the last digit.
"""

from __future__ import annotations

from collections import deque
from uuid import UUID

import structlog

from billfold.payments.deposits.ports import IncomingAch, IncomingPayment, IncomingWire
from billfold.platform.ids import digits

log = structlog.get_logger(__name__)

RETURNS_MAX = 1_000
ENTRY_DESCRIPTION = "PAYMENT"
"""What companies of the sandbox write into the ten characters of their entries."""

_ORIGIN = "09100001"
"""The first eight digits of the sending bank's routing number, which open a trace number."""
_TRACE_DIGITS, _REFERENCE_DIGITS, _INDIVIDUAL_DIGITS = 7, 12, 10
_TRACE, _REFERENCE, _INDIVIDUAL = range(3)


class SimulatedBank:
    """Makes incoming payments, and remembers those that were sent back."""

    def __init__(self, seed: bytes) -> None:
        self._seed = seed
        self.sent_back: deque[tuple[IncomingPayment, str]] = deque(maxlen=RETURNS_MAX)

    def wire(
        self,
        wire_id: UUID,
        *,
        routing_number: str,
        account_number: str,
        amount: int,
        sender_name: str,
        sender_account_number: str | None = None,
        sender_routing_number: str | None = None,
    ) -> IncomingWire:
        """Return the wire of this id."""
        return IncomingWire(
            wire_id=wire_id,
            routing_number=routing_number,
            account_number=account_number,
            amount=amount,
            sender_name=sender_name,
            reference_number="W" + digits(self._seed, wire_id, _REFERENCE, _REFERENCE_DIGITS),
            description=f"Wire from {sender_name}",
            sender_account_number=sender_account_number,
            sender_routing_number=sender_routing_number,
        )

    def ach_credit(
        self, ach_id: UUID, *, routing_number: str, account_number: str, amount: int, company_name: str
    ) -> IncomingAch:
        """Return the ACH credit of this id."""
        return IncomingAch(
            ach_id=ach_id,
            routing_number=routing_number,
            account_number=account_number,
            amount=amount,
            company_name=company_name,
            company_entry_description=ENTRY_DESCRIPTION,
            individual_identification_number=digits(self._seed, ach_id, _INDIVIDUAL, _INDIVIDUAL_DIGITS),
            trace_number=_ORIGIN + digits(self._seed, ach_id, _TRACE, _TRACE_DIGITS),
        )

    async def return_payment(self, payment: IncomingPayment, reason: str) -> None:
        """Take a payment back and remember it."""
        self.sent_back.append((payment, reason))
        log.info("payment_returned", reason=reason, amount=payment.amount)
