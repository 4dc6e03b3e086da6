"""Expiry of reversal requests, safe to repeat."""

from billfold.ledger.bank import Bank
from billfold.ledger.types import ScheduledJob
from billfold.payments.on_us.reversals import store
from billfold.payments.on_us.reversals.commands import EXPIRY_JOB, EndReversalRequest, ReversalStatus
from billfold.platform.errors import Refused


async def expire_request(bank: Bank, job: ScheduledJob) -> None:
    """End a request that nobody answered in time."""
    assert job.customer_id is not None
    row = await store.get_request(bank.pool, job.customer_id, job.object_id)
    try:
        await bank.engine.submit(
            EndReversalRequest(
                caller=EXPIRY_JOB,
                key=row.reversal_id,
                customers=(row.customer_id, row.requester_id),
                references=(row.reversal_id,),
                reversal_id=row.reversal_id,
                status=ReversalStatus.EXPIRED,
            )
        )
    except Refused as refusal:
        if refusal.code != "reversal-not-open":  # answered in time
            raise
