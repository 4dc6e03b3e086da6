"""Something happens of which the team of a desk is told."""

from uuid import UUID

from billfold.domain import notifications
from billfold.kit.clock import wall_now


async def tell(desk, kind="FUNDS_RECEIVED", *, title="Money arrived", **fields):
    """Tell the team of something; return how many were told."""
    bank = desk.bank
    async with bank.pool.acquire() as conn, conn.transaction():
        return await notifications.notify(
            conn, bank.vault, UUID(desk.team.customer), kind,
            title=title, description="A wire of $1.00.", now=wall_now(), **fields,
        )  # fmt: skip


async def member_id_of(desk):
    """Return the id of the member who sits at a desk."""
    found = await desk.bank.pool.fetchval(
        "SELECT member_id FROM membership WHERE user_id = $1", desk.team.user_id
    )
    return str(found)
