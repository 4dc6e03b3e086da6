"""How far the ledger of a customer had come at a moment."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from billfold.reports.proofs.types import LedgerPosition

if TYPE_CHECKING:
    from billfold.platform.database.pool import Connection, Pool

_LAST_ENTRY = """
SELECT entry_no FROM journal_entry WHERE customer_id = $1 AND booked_at < $2 ORDER BY entry_no DESC LIMIT 1
"""
_COMMIT_OF = """
SELECT version, encode(hash, 'hex') AS chain FROM chain_entry
 WHERE customer_id = $1 AND version = 1 + coalesce((
   SELECT version FROM chain_entry WHERE customer_id = $1 AND entry_no < $2 ORDER BY version DESC LIMIT 1), 0)
"""


async def get_position_before(conn: Connection | Pool, customer_id: UUID, instant: datetime) -> LedgerPosition:
    """Return the position of the last journal entry that was booked before an instant."""
    entry_no: int | None = await conn.fetchval(_LAST_ENTRY, customer_id, instant)
    return await get_position(conn, customer_id, entry_no or 0)


async def get_position(conn: Connection | Pool, customer_id: UUID, entry_no: int) -> LedgerPosition:
    """Return the position of a journal entry: the commit that it came with; 0 is before the first."""
    row = await conn.fetchrow(_COMMIT_OF, customer_id, entry_no) if entry_no else None
    return LedgerPosition(0, 0, "") if row is None else LedgerPosition(row["version"], entry_no, row["chain"])
