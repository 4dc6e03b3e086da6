"""The expiry of holds."""

from billfold.accounts.holds.commands import ExpireHold
from billfold.ledger.bank import Bank
from billfold.ledger.types import ScheduledJob


async def expire_hold(bank: Bank, job: ScheduledJob) -> None:
    """End a hold whose time is over. Safe to repeat."""
    assert job.customer_id is not None
    await bank.engine.submit(
        ExpireHold(
            caller=f"holds:{job.at.isoformat()}",
            key=job.object_id,
            customers=(job.customer_id,),
            references=(job.object_id,),
            hold_id=job.object_id,
        )
    )
