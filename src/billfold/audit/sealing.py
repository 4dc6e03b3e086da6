"""Sealing the audit log: the ends of its chains signed, and the seals carried out of the bank."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from billfold.audit import seals

if TYPE_CHECKING:
    from billfold.audit.ports import Archive
    from billfold.ledger.bank import Bank


async def seal_all(bank: Bank, now: datetime) -> int:
    """Seal every end that moved and return how many seals it took."""
    made = 0
    while True:
        async with bank.pool.acquire() as conn, conn.transaction():
            seal = await seals.seal_heads(conn, bank.vault, now=now)
        if seal is None:
            return made
        made += 1
        if len(seal.heads) < seals.HEADS_MAX:
            return made


async def carry_out(bank: Bank, archive: Archive) -> int:
    """Add to the archive what it lacks; return how many seals it holds then."""
    there = await archive.add([], after=0)
    while lines := await seals.lines_after(bank.pool, there):
        there = await archive.add(lines, after=there)
    return there
