"""Holds payments that cannot be booked in suspense; ACH payments are returned a banking day later.

Until then the operator can assign them to their owner.
"""

from collections.abc import Sequence
from contextlib import suppress
from datetime import date, datetime, time
from typing import Any, NamedTuple
from uuid import UUID

from billfold.ledger import scheduler
from billfold.ledger.bank import Bank
from billfold.ledger.dry_run import submit_in_lots
from billfold.ledger.types import Direction, Rail, ScheduledJob
from billfold.payments.suspense.rules import HoldInSuspense, ReturnFromSuspense
from billfold.platform.calendars import Calendars
from billfold.platform.dates import et_date, et_instant
from billfold.platform.errors import Refused

UNCLAIMED_RETURN_JOB = "ach.unclaimed"
CLOSED_POCKET_REASON = (
    "It is money of a customer whose Pocket is closed. "
    "Assign it to another portal of the customer: billfold suspense assign."
)
RETURN_REFUSED_REASON = (
    "The other bank refuses our return of it. Settle that with the bank (billfold suspense return --by-hand), credit "
    "it to whom it was for (billfold suspense assign), or write a debit off (billfold suspense write-off)."
)
"""The reason why money in suspense cannot be returned by an entry."""
RETURN_TIME = time(12)
"""The time of the return (ET), on the next banking day: the time frame of a return is two days."""


class UnclaimedPayment(NamedTuple):
    """A payment that cannot be booked. Amount in cents.

    `details` has the fields of its rail: for ACH its `answer`, the return entry, or why it `stays`.
    """

    item_id: UUID
    direction: Direction
    amount: int
    reason: str
    details: dict[str, Any]
    settles_on: date | None = None


async def hold_unclaimed_payments(
    bank: Bank, payments: Sequence[UnclaimedPayment], *, rail: Rail = Rail.ACH, caller: str = "ach-file"
) -> None:
    """Hold payments in suspense, and schedule the return of ACH payments that can be returned."""
    if not payments:
        return
    bank_id = bank.own_id
    commands = [
        HoldInSuspense(caller=caller, key=each.item_id, customers=(bank_id,), rail=rail, **each._asdict())
        for each in payments
    ]
    async for _ in submit_in_lots(bank, commands):
        pass
    returnable = [each.item_id for each in payments if each.details.get("answer") is not None]
    if not returnable:
        return
    at = return_due_at(await bank.now(), bank.calendars)
    await scheduler.schedule(bank.pool, [ScheduledJob(UNCLAIMED_RETURN_JOB, it, bank_id, at=at) for it in returnable])


async def return_item(bank: Bank, item_id: UUID, reason: str, caller: str) -> None:
    """Return a suspense item."""
    await bank.engine.submit(
        ReturnFromSuspense(
            caller=caller,
            key=item_id,
            customers=(bank.own_id,),
            item_id=item_id,
            reason=reason,
            references=(item_id,),
        )
    )


def return_due_at(now: datetime, calendars: Calendars) -> datetime:
    """Return when to return a payment received now."""
    return et_instant(calendars.next_fed_day(et_date(now)), RETURN_TIME)


async def return_unclaimed(bank: Bank, at: ScheduledJob) -> None:
    """Return an item that is still held: a scheduled job."""
    with suppress(Refused):
        await return_item(bank, at.object_id, "UNCLAIMED", caller="ach-unclaimed")
