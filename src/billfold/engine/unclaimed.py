"""Payments that reach nobody: the house holds them for a banking day, then they go back.

In between the operator may find the owner and assign them.
"""

from __future__ import annotations

from datetime import time
from typing import TYPE_CHECKING, Any
from uuid import UUID

from billfold.domain import agenda
from billfold.domain.agenda import Appointment
from billfold.engine.due_work import house_id
from billfold.flows.suspense import HoldInSuspense, ReturnFromSuspense
from billfold.kit.dates import et_date, et_instant
from billfold.kit.errors import Refused

if TYPE_CHECKING:
    from datetime import datetime

    from billfold.engine.bank import Bank
    from billfold.kit.calendars import Calendars

UNCLAIMED = "ach.unclaimed"
GOES_BACK = time(12)
"""When it goes back (ET), on the banking day after it came: a return code's time is two days."""


async def hold_unclaimed(
    bank: Bank, item_id: UUID, direction: str, amount: int, reason: str, details: dict[str, Any]
) -> None:
    """Hold an ACH payment. `details` holds its `answer`, the entry that sends it back, if any."""
    house = house_id(bank.seed)
    await bank.engine.submit(
        HoldInSuspense(
            caller="ach-file", key=item_id, customers=(house,), item_id=item_id, rail="ACH",
            direction=direction, amount=amount, reason=reason, details=details,
        )
    )  # fmt: skip
    if details.get("answer") is not None:
        at = goes_back_at(await bank.now(), bank.calendars)
        await agenda.make(bank.pool, [Appointment(UNCLAIMED, item_id, house, at)])


def goes_back_at(now: datetime, calendars: Calendars) -> datetime:
    """Return when a payment that came now is sent back."""
    return et_instant(calendars.next_fed_day(et_date(now)), GOES_BACK)


async def send_unclaimed_back(bank: Bank, at: Appointment) -> None:
    """Send it back, unless its owner has been found or somebody sent it back already."""
    try:
        await bank.engine.submit(
            ReturnFromSuspense(
                caller="ach-unclaimed", key=at.object_id, customers=(house_id(bank.seed),),
                item_id=at.object_id, reason="UNCLAIMED", looks_at=(at.object_id,),
            )
        )  # fmt: skip
    except Refused:
        return
