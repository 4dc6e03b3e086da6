"""Something happens of which the team of a desk is told."""

from uuid import UUID

from billfold.events.notifications import notify as notification_notify
from billfold.platform.clock import wall_now
from billfold.platform.crypto import associated_data


async def tell(customer_desk, kind="FUNDS_RECEIVED", *, title="Money arrived", **fields):
    """Tell the team of something; return how many were told."""
    bank = customer_desk.bank
    async with bank.pool.acquire() as conn, conn.transaction():
        return await notification_notify.notify(
            conn,
            bank.vault,
            UUID(customer_desk.team.customer),
            kind,
            title=title,
            description="A wire of $1.00.",
            now=wall_now(),
            **fields,
        )


async def notified(bank, customer_id=None):
    """Return type and description of the notifications of a customer, or of all, the first one first."""
    rows = await bank.pool.fetch(
        "SELECT customer_id, notification_id, type, description FROM notification"
        " WHERE $1::uuid IS NULL OR customer_id = $1 ORDER BY created_at",
        customer_id,
    )
    return [
        (kind, bank.vault.open_text(sealed, associated_data("notification", "description", row_id, tenant_id=owner)))
        for owner, row_id, kind, sealed in rows
    ]
