"""Reports changes that are not commands: a job in the transaction of the change raises the event of what is true then.

Several changes before the job runs are one event, of the last one.
"""

from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

import msgspec

from billfold.events import kinds
from billfold.events.commands import ReportChange
from billfold.ledger.bank import Bank
from billfold.ledger.types import EventKind, Payload, ScheduledJob
from billfold.platform.clock import wall_now
from billfold.platform.ids import command_id

LIMITS_CHANGED: Final = "customer.limits_changed"
STATEMENT_MADE: Final = "statement.made"


def job_of(kind: str, object_id: UUID, customer_id: UUID, now: datetime) -> ScheduledJob:
    """Return the job of a change, which is due less than a second before `now`.

    So each change has an instant of its own, while the clock of a sandbox stands still, too: it raises its own event,
    and the end of a job that runs meanwhile does not remove it.
    """
    return ScheduledJob(kind, object_id, customer_id, now - timedelta(microseconds=wall_now().microsecond))


async def report(bank: Bank, job: ScheduledJob, kind: EventKind[Payload], payload: Payload) -> None:
    """Raise an event for a job. Running the job twice raises it once."""
    assert job.customer_id is not None
    text = msgspec.json.encode(payload).decode()
    key = command_id(job.kind, f"{job.object_id} {job.at.isoformat()} {text}")
    command = ReportChange(caller=job.kind, key=key, customers=(job.customer_id,), event_kind=kind.name, payload=text)
    await bank.engine.submit(command)


async def report_limits(bank: Bank, job: ScheduledJob) -> None:
    """Raise the event of changed limits; the object of the job is the customer."""
    await report(bank, job, kinds.CUSTOMER_LIMITS_UPDATED, kinds.LimitsPayload(customer_id=job.object_id))


async def report_statement(bank: Bank, job: ScheduledJob) -> None:
    """Raise the event of a statement, the object of the job."""
    await report(bank, job, kinds.STATEMENT_AVAILABLE, kinds.StatementPayload(statement_id=job.object_id))
