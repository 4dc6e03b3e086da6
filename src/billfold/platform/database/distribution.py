"""Whether the customers of this bank lie on the nodes of a Citus cluster (ADR 0093)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from billfold.platform.database.pool import Connection, Pool

HEADS_LOCKED = "ledger_heads_locked"
"""The function that locks heads there, which `migrate up --distributed` creates: by it a distributed bank is known."""


async def is_distributed(conn: Connection | Pool) -> bool:
    """Tell whether a statement goes to the shards of the customers that its values name."""
    return bool(await conn.fetchval("SELECT to_regproc($1) IS NOT NULL", HEADS_LOCKED))
