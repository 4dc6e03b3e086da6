"""What was waited for long enough is waited for no more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from billfold.flows.counterparty_commands import ExpireVerification
from billfold.kit.errors import Broken

if TYPE_CHECKING:
    from billfold.domain.agenda import Appointment
    from billfold.engine.bank import Bank


async def expire(bank: Bank, appointment: Appointment) -> None:
    """End the verification of a counterparty from whose account no wire has come."""
    if appointment.customer_id is None:
        raise Broken("a counterparty is somebody's")
    await bank.engine.submit(
        ExpireVerification(
            caller="agenda",
            key=appointment.object_id,
            customers=(appointment.customer_id,),
            counterparty_id=appointment.object_id,
        )
    )
