"""Payments that reach nobody: the house holds them for a banking day, then they go back.

In between the operator may find the owner and assign them.
"""

from __future__ import annotations

from datetime import time
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

from billfold.ledger.engine.bulk import submit_many
from billfold.ledger.jobs import store as jobs_store
from billfold.ledger.jobs.due_work import house_id
from billfold.ledger.jobs.types import Appointment
from billfold.ledger.types import Direction, Rail
from billfold.payments.suspense.commands import HoldInSuspense, ReturnFromSuspense
from billfold.platform.dates import et_date, et_instant
from billfold.platform.errors import Refused

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from billfold.ledger.bank import Bank
    from billfold.platform.calendars import Calendars

UNCLAIMED = "ach.unclaimed"
OUR_CUSTOMERS = (
    "It is money of our own customer whose Pocket is closed. "
    "Book it to another portal of his: billfold suspense assign."
)
OUR_RETURN = (
    "The other bank refuses our return of it. Settle that with the bank, or book it to whom it "
    "was for: billfold suspense assign."
)
"""Why money stays in suspense that no entry can send back."""
GOES_BACK = time(12)
"""When it goes back (ET), on the banking day after it came: a return code's time is two days."""


class Unclaimed(NamedTuple):
    """An ACH payment that reached nobody. Amount in cents.

    `details` holds its `answer`, the entry that sends it back, or why it `stays`.
    """

    item_id: UUID
    direction: Direction
    amount: int
    reason: str
    details: dict[str, Any]


async def hold_unclaimed(bank: Bank, payments: Sequence[Unclaimed]) -> None:
    """Hold payments, and see to it that those with an answer go back."""
    if not payments:
        return
    house = house_id(bank.seed)
    commands = [
        HoldInSuspense(
            caller="ach-file", key=each.item_id, customers=(house,), item_id=each.item_id,
            rail=Rail.ACH, direction=each.direction, amount=each.amount, reason=each.reason,
            details=each.details,
        )
        for each in payments
    ]  # fmt: skip
    async for _ in submit_many(bank, commands):
        pass
    at = goes_back_at(await bank.now(), bank.calendars)
    answered = [each.item_id for each in payments if each.details.get("answer") is not None]
    await jobs_store.make(bank.pool, [Appointment(UNCLAIMED, it, house, at) for it in answered])


def goes_back_at(now: datetime, calendars: Calendars) -> datetime:
    """Return when a payment that came now is sent back."""
    return et_instant(calendars.next_fed_day(et_date(now)), GOES_BACK)


async def send_unclaimed_back(bank: Bank, at: Appointment) -> None:
    """Send it back, unless its owner has been found or somebody sent it back already."""
    try:
        await bank.engine.submit(
            ReturnFromSuspense(
                caller="ach-unclaimed", key=at.object_id, customers=(house_id(bank.seed),),
                item_id=at.object_id, reason="UNCLAIMED", references=(at.object_id,),
            )
        )  # fmt: skip
    except Refused:
        return
