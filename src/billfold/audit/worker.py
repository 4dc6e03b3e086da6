"""The notary: seals the ends of the audit log every hour and carries the seals out of the bank."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

import structlog

from billfold.audit import seals
from billfold.audit.ports import Archive
from billfold.audit.sealing import carry_out, seal_all
from billfold.ledger.bank import Bank
from billfold.platform.clock import wall_now

log = structlog.get_logger(__name__)

SEALED_EVERY = timedelta(hours=1)
_LOOKED_EVERY = timedelta(minutes=1)


class Notary:
    """An errand of the worker. What was sealed and not carried out is carried out later."""

    __slots__ = ("_archive", "_clock", "_look_at")

    def __init__(self, archive: Archive, clock: Callable[[], datetime] = wall_now) -> None:
        self._archive = archive
        self._clock = clock
        self._look_at = datetime.min.replace(tzinfo=clock().tzinfo)

    async def __call__(self, bank: Bank) -> int:
        """Seal when an hour has gone by; return how many seals were made."""
        now = self._clock()
        if now < self._look_at:
            return 0
        last = await seals.last_sealed_at(bank.pool)
        made = 0
        if last is None or now - last >= SEALED_EVERY:
            made = await seal_all(bank, now)
        await carry_out(bank, self._archive)
        self._look_at = now + _LOOKED_EVERY
        return made
