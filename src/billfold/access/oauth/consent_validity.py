"""Whether what a user granted is still valid: the user is active, and in the customer's team."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

if TYPE_CHECKING:
    from billfold.platform.database.pool import Connection, Pool

_MEMBER = """
SELECT true FROM membership m JOIN user_account p USING (user_id)
 WHERE m.customer_id = $1 AND m.user_id = $2 AND m.status = 'ACTIVE' AND p.status = 'ACTIVE'
"""


async def is_member(conn: Connection | Pool, customer_id: UUID, user_id: UUID) -> bool:
    """Return whether an active user is an active member of a customer's team."""
    return await conn.fetchval(_MEMBER, customer_id, user_id) is True


async def lock_member(conn: Connection, customer_id: UUID, user_id: UUID) -> bool:
    """Return the same, and lock the membership until the transaction ends."""
    return await conn.fetchval(f"{_MEMBER} FOR SHARE OF m", customer_id, user_id) is True
