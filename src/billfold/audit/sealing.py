"""Sealing the audit log: the ends of its chains signed, and the seals carried out of the bank."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from billfold.audit import seals

if TYPE_CHECKING:
    from billfold.audit.ports import Archive
    from billfold.ledger.bank import Bank


async def seal_audit_log(bank: Bank, now: datetime) -> int:
    """Seal every end that moved and return how many seals it took."""
    count = 0
    while True:
        async with bank.pool.acquire() as conn, conn.transaction():
            seal = await seals.seal_heads(conn, bank.vault, now=now)
        if seal is None:
            return count
        count += 1
        if len(seal.heads) < seals.HEADS_MAX:
            return count


async def archive_seals(bank: Bank, archive: Archive) -> int:
    """Add to the archive what it lacks; return how many seals it holds then."""
    archived = await archive.add([], after=0)
    while lines := await seals.list_seal_lines(bank.pool, archived):
        archived = await archive.add(lines, after=archived)
    return archived
