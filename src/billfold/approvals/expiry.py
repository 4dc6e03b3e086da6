"""Verifications of counterparties, and requests, expire."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from billfold.accounts.counterparties.commands import ExpireVerification
from billfold.approvals.store.authorization_requests import EXPIRE_AUTHORIZATION_REQUEST
from billfold.approvals.store.fingerprints import record_checksums
from billfold.approvals.types import EXPIRE_TRANSFER_REQUEST
from billfold.audit import record as audit_record
from billfold.audit.types import Origin
from billfold.platform.clock import wall_now

if TYPE_CHECKING:
    from billfold.ledger.bank import Bank
    from billfold.ledger.jobs.types import ScheduledJob

_RESOURCES: Final = {
    EXPIRE_TRANSFER_REQUEST: ("transfer_request", "transfer_request"),
    EXPIRE_AUTHORIZATION_REQUEST: ("authorization_request", "authorization_request"),
}
"""Kind of job -> what the audit log calls the request, and its table."""
_EXPIRE = """
UPDATE {table} SET status = 'EXPIRED', updated_at = $3
 WHERE customer_id = $1 AND request_id = $2 AND status = 'PENDING' AND expires_at <= $3
RETURNING *
"""


async def expire_verification(bank: Bank, job: ScheduledJob) -> None:
    """End a verification by incoming wire when none has arrived."""
    assert job.customer_id is not None
    await bank.engine.submit(
        ExpireVerification(
            caller="agenda", key=job.object_id, customers=(job.customer_id,), counterparty_id=job.object_id
        )
    )


async def expire_request(bank: Bank, job: ScheduledJob) -> None:
    """Record that a request has expired; a decided one stays as it is."""
    assert job.customer_id is not None
    resource, table = _RESOURCES[job.kind]
    async with audit_record.audited(
        bank.pool,
        bank.vault,
        job.customer_id,
        origin=Origin.system(),
        action=f"{resource}.expired",
        resource=(resource, job.object_id),
        now=wall_now(),
    ) as audited:
        sql, now = _EXPIRE.format(table=table), await bank.now()
        expired = await audited.conn.fetch(sql, job.customer_id, job.object_id, now)
        record_checksums(audited, table, expired)
        if not expired:
            audited.skip()
