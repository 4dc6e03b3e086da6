"""Returns of entries that reached no customer: queued for the next window."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING
from uuid import UUID

import msgspec

from billfold.ledger.jobs import store as jobs_store
from billfold.ledger.jobs.due_work import bank_customer_id
from billfold.ledger.jobs.types import ScheduledJob
from billfold.payments.ach.rules import windows
from billfold.payments.ach.rules.entries import ACH_WINDOW, window_at
from billfold.payments.ach.store import files
from billfold.payments.ach.types import ReturnEntry
from billfold.payments.suspense import store as suspense_store

if TYPE_CHECKING:
    from billfold.ledger.bank import Bank

SUSPENSE_RETURN_JOB = "ach.suspense_return"
"""The kind of scheduled job that queues a return for money that has left suspense."""


async def schedule_return_entries(bank: Bank, answers: Sequence[tuple[UUID, ReturnEntry]]) -> None:
    """Queue returns, each with its id, for the next window."""
    if not answers:
        return
    now, bank_id = await bank.now(), bank_customer_id(bank.seed)
    due_at = windows.next_deadline(now, bank.calendars)
    await files.queue_return_entries(bank.pool, answers, bank_id, due_at=due_at, now=now)
    await jobs_store.schedule(bank.pool, [ScheduledJob(ACH_WINDOW, window_at(due_at), None, at=due_at)])


async def queue_suspense_return(bank: Bank, at: ScheduledJob) -> None:
    """Queue the return of a suspense item that was released for return."""
    item = await suspense_store.get_item(bank.pool, at.object_id)
    return_fields = msgspec.json.decode(item.details).get("answer")
    if return_fields is not None:
        await schedule_return_entries(bank, [(item.item_id, msgspec.convert(return_fields, ReturnEntry))])
