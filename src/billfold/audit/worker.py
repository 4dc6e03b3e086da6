"""Seals the ends of the audit log every hour and archives the seals outside the database."""

from collections.abc import Callable
from datetime import datetime, timedelta

import structlog

from billfold.audit import seals
from billfold.audit.file_archive import FileArchive
from billfold.ledger.bank import Bank
from billfold.platform.clock import wall_now

log = structlog.get_logger(__name__)

SEAL_INTERVAL = timedelta(hours=1)
_CHECK_INTERVAL = timedelta(minutes=1)


class AuditSealer:
    """A periodic task of the worker. Seals that could not be archived are archived later."""

    __slots__ = ("_archive", "_clock", "_next_check_at")

    def __init__(self, archive: FileArchive, clock: Callable[[], datetime] = wall_now) -> None:
        self._archive = archive
        self._clock = clock
        self._next_check_at = datetime.min.replace(tzinfo=clock().tzinfo)

    async def __call__(self, bank: Bank) -> int:
        """Seal when an hour has gone by; return how many seals were made."""
        now = self._clock()
        if now < self._next_check_at:
            return 0
        last = await seals.last_sealed_at(bank.pool)
        sealed = 0
        if last is None or now - last >= SEAL_INTERVAL:
            sealed = await seal_audit_log(bank, now)
        await archive_seals(bank, self._archive)
        self._next_check_at = now + _CHECK_INTERVAL
        return sealed


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


async def archive_seals(bank: Bank, archive: FileArchive) -> int:
    """Add to the archive what it lacks; return how many seals it holds then."""
    archived = await archive.add([], after=0)
    while lines := await seals.list_seal_lines(bank.pool, archived):
        archived = await archive.add(lines, after=archived)
    return archived
