"""The job of a dispute, safe to repeat: its provisional credit, and the end of the investigation."""

from billfold.ledger.bank import Bank
from billfold.ledger.types import Origin, ScheduledJob
from billfold.payments.cards.authorizations.disputes.commands import DISPUTE_JOB, DecideDispute


async def run_dispute_job(bank: Bank, job: ScheduledJob) -> None:
    """Do what is due. The rule decides what that is; nothing is due in a dispute that has ended."""
    assert job.customer_id is not None
    await bank.engine.submit(
        DecideDispute(
            caller=f"{DISPUTE_JOB}:{job.at.isoformat()}",
            key=job.object_id,
            customers=(job.customer_id,),
            origin=Origin.system(),
            references=(job.object_id,),
            dispute_id=job.object_id,
        )
    )
