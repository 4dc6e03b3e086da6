"""Queries of security transfers."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from billfold.payments.custody.commands import SecurityTransfer
from billfold.platform.database.connection import Connection, Pool
from billfold.platform.errors import NotFound

_COLUMNS = ", ".join(SecurityTransfer.__struct_fields__)
_SOME = f"""
SELECT {_COLUMNS} FROM security_transfer
 WHERE customer_id = ANY($1::uuid[]) AND transfer_id = ANY($2::uuid[])
"""
_LIST = f"""
SELECT {_COLUMNS} FROM security_transfer ORDER BY created_at DESC, written_no DESC LIMIT $1
"""


async def get_transfer(conn: Connection | Pool, customer_id: UUID, transfer_id: UUID) -> SecurityTransfer:
    """Return the customer's security transfer. Raises NotFound."""
    rows = await conn.fetch(_SOME, [customer_id], [transfer_id])
    if not rows:
        raise NotFound("There is no such security transfer.")
    return SecurityTransfer(**rows[0])


async def list_transfers(conn: Connection | Pool, *, limit: int = 200) -> list[SecurityTransfer]:
    """Return the newest security transfers."""
    return [SecurityTransfer(**row) for row in await conn.fetch(_LIST, limit)]


async def load_references(
    conn: Connection, customer_ids: Sequence[UUID], ids: Sequence[UUID]
) -> list[tuple[UUID, UUID, Any]]:
    """Return the security transfers of these customers among the ids, as rules see them."""
    found = [SecurityTransfer(**row) for row in await conn.fetch(_SOME, customer_ids, ids)]
    return [(each.customer_id, each.transfer_id, each) for each in found]
