"""The carrier of files between the bank and its rails: some are not written; those to the bank late, doubled, cut."""

from __future__ import annotations

import asyncio
import errno
from random import Random
from typing import Any

from billfold.payments.files.exchange import ExchangeFolders
from simulation.faults import Faults
from simulation.loop import OUTSIDE, SimulationLoop

LATE_SECONDS = 120.0


class Carrier:
    """Carries the files of this process. `under_way` of them have not arrived."""

    def __init__(self, loop: SimulationLoop, random: Random, faults: Faults) -> None:
        self._loop, self._random, self._faults = loop, random, faults
        self.under_way = 0
        exchanges: Any = ExchangeFolders
        self._transmit = ExchangeFolders.transmit

        async def carry(exchange: ExchangeFolders, name: str, content: bytes) -> None:
            await self.carry(exchange, name, content)

        exchanges.transmit = carry

    async def carry(self, exchange: ExchangeFolders, name: str, content: bytes) -> None:
        """Carry a file; one to the bank may come late, twice under other names, or first in half."""
        to_bank, random = exchange._outbox.name == "inbox", self._random
        if not to_bank and random.random() < self._faults.rate:
            self._faults.happened["file not written"] += 1
            raise OSError(errno.ENOSPC, "No space left on device")
        for kind in ("late", "doubled", "truncated") if to_bank else ():
            if random.random() < 10 * self._faults.rate:
                self._faults.happened[f"file {kind}"] += 1
                if kind == "late":
                    self.under_way += 1
                    self._loop.start(OUTSIDE, self._later(exchange, name, content))
                    return
                copy = content if kind == "doubled" else content[: random.randrange(len(content))]
                await self._transmit(exchange, f"{kind}-{name}", copy)
        await self._transmit(exchange, name, content)

    async def _later(self, exchange: ExchangeFolders, name: str, content: bytes) -> None:
        await asyncio.sleep(self._random.random() * LATE_SECONDS)
        await self._transmit(exchange, name, content)
        self.under_way -= 1
