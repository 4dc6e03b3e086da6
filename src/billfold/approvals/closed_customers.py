"""What a closed customer leaves open is ended: requests that wait, invitations, service users and subscriptions.

Members keep reading: an access token of a closed customer is that of a viewer.
"""

from datetime import datetime
from typing import Final
from uuid import UUID

from billfold.approvals.store.requests import AUTHORIZATION_REQUESTS, TRANSFER_REQUESTS
from billfold.audit.record import audited
from billfold.events.webhooks.subscriptions import disable_subscriptions
from billfold.ledger import scheduler as jobs_store
from billfold.ledger.bank import Bank
from billfold.ledger.types import Origin, ScheduledJob
from billfold.oauth import clients
from billfold.platform.clock import wall_now

REASON: Final = "customer-not-open"
"""Why what waited was cancelled, and a subscription was disabled."""


async def run_closed_job(bank: Bank, job: ScheduledJob) -> None:
    """End what a customer left open when it was closed; running it twice changes nothing."""
    now = await bank.now()
    await _cancel_requests(bank, job.object_id, now)
    await _end_access(bank, job.object_id)


async def _cancel_requests(bank: Bank, customer_id: UUID, now: datetime) -> None:
    for kind in (TRANSFER_REQUESTS, AUTHORIZATION_REQUESTS):
        for request in await kind.list_pending(bank.pool, customer_id, now=now):
            await kind.update_by_bank(
                bank,
                customer_id,
                request.request_id,
                verb="cancelled",
                where="status = 'PENDING'",
                details={"reason": REASON},
                status="CANCELLED",
                updated_at=now,
            )
            await jobs_store.cancel(bank.pool, kind.expiry_job, request.request_id)


async def _end_access(bank: Bank, customer_id: UUID) -> None:
    wall = wall_now()
    async with audited(
        bank.pool,
        bank.vault,
        customer_id,
        origin=Origin.system(),
        action="customer.access_ended",
        resource=("customer", customer_id),
        now=wall,
    ) as action:
        conn = action.conn
        service_users = await clients.list_service_user_ids(conn, customer_id)
        for client_id in service_users:
            await clients.revoke_client(conn, client_id, now=wall)
        subscriptions = await disable_subscriptions(conn, customer_id, because=REASON, now=wall)
        invitations = await conn.fetch("DELETE FROM invitation WHERE customer_id = $1 RETURNING member_id", customer_id)
        ended = {"service_users": len(service_users), "subscriptions": subscriptions, "invitations": len(invitations)}
        action.details.update(ended)
        if not any(ended.values()):
            action.skip()
