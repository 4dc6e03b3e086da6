"""Something happens of which the team of a desk is told."""

from uuid import UUID

from billfold.events.notifications import notify as notification_notify
from billfold.platform.clock import wall_now


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
