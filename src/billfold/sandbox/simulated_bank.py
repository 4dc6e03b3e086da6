"""A correspondent bank that exists only in the sandbox: it sends what it is asked to send.

Every number of a payment is derived from the payment's own id, so a payment that is asked for
again under the same id is the same to the last digit.
"""

from __future__ import annotations

from uuid import UUID

from billfold.payments.deposits.types import IncomingAch
from billfold.platform.ids import digits

ENTRY_DESCRIPTION = "PAYMENT"
"""What companies of the sandbox write into the ten characters of their entries."""

_ORIGIN = "09100001"
"""The first eight digits of the sending bank's routing number, which open a trace number."""
_TRACE_DIGITS, _INDIVIDUAL_DIGITS = 7, 10
_TRACE, _INDIVIDUAL = 0, 2


class SimulatedBank:
    """Makes incoming ACH credits."""

    def __init__(self, seed: bytes) -> None:
        self._seed = seed

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
            individual_identification_number=digits(self._seed, ach_id, _INDIVIDUAL, count=_INDIVIDUAL_DIGITS),
            trace_number=_ORIGIN + digits(self._seed, ach_id, _TRACE, count=_TRACE_DIGITS),
        )
