"""The notary: seals the ends of the audit log every hour and carries the seals out of the bank."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

import structlog

from billfold.audit import seals
from billfold.audit.ports import Archive
from billfold.audit.sealing import archive_seals, seal_audit_log
from billfold.ledger.bank import Bank
from billfold.platform.clock import wall_now

log = structlog.get_logger(__name__)

SEAL_INTERVAL = timedelta(hours=1)
_CHECK_INTERVAL = timedelta(minutes=1)


class AuditSealer:
    """An errand of the worker. What was sealed and not carried out is carried out later."""

    __slots__ = ("_archive", "_clock", "_next_check_at")

    def __init__(self, archive: Archive, clock: Callable[[], datetime] = wall_now) -> None:
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
