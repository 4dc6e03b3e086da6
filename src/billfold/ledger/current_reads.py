"""What a document is made of, read from a replica that has all of it, or else from the primary."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import structlog

from billfold.ledger.bank import Bank
from billfold.platform.database.replica import Reading, Replica
from billfold.platform.database.shortage import error_summary

log = structlog.get_logger(__name__)
Result = TypeVar("Result")


class CurrentReads:
    """The reads of one document, which shows everything that was committed when they began."""

    __slots__ = ("_bank", "_on_replica")

    def __init__(self, bank: Bank, on_replica: tuple[Replica, Reading] | None) -> None:
        self._bank = bank
        self._on_replica = on_replica

    @classmethod
    async def begin(cls, bank: Bank) -> CurrentReads:
        """Wait a moment for a replica that has everything; without one the primary is read."""
        replica = bank.replica
        if replica is None:
            return cls(bank, None)
        try:
            reading = await replica.current()
        except Exception as error:  # noqa: BLE001 - whatever it is, the primary is read
            log.warning("replica_unavailable", error=error_summary(error))
            reading = None
        return cls(bank, None if reading is None else (replica, reading))

    async def read(self, work: Callable[[Bank], Awaitable[Result]]) -> Result:
        """Return what `work` reads. What fails on a replica is done again on the primary, as all that follows."""
        if self._on_replica is not None:
            replica, reading = self._on_replica
            try:
                with replica.reading(reading):
                    return await work(self._bank.read_by(replica.pool))
            except Exception as error:  # noqa: BLE001 - the primary says whether it is the replica's
                self._on_replica = None
                log.info("replica_left", error=error_summary(error))
        return await work(self._bank)
