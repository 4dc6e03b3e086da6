"""Files wait for their turn: a tenant receives some at once, and fewer of them are in memory."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final
from uuid import UUID
from weakref import WeakValueDictionary

from billfold.http.responses import ProblemWithHeaders

FILES_RECEIVED_MAX: Final = 16
"""How many files of a tenant are received at once; the others are not read yet."""
FILE_WAIT_SECONDS: Final = 300.0
"""How long a file waits until it is read."""


class UploadTurns:
    """The turns of one process; `in_memory_max` files of a tenant may be in memory at once."""

    def __init__(self, in_memory_max: int) -> None:
        self._in_memory_max = in_memory_max
        self._receiving: WeakValueDictionary[UUID, asyncio.Semaphore] = WeakValueDictionary()
        self._in_memory: WeakValueDictionary[UUID, asyncio.Semaphore] = WeakValueDictionary()

    @asynccontextmanager
    async def receiving(self, tenant: UUID) -> AsyncIterator[None]:
        """Wait until a file may be received. Raises `rate-limited` after minutes."""
        turns = self._receiving.setdefault(tenant, asyncio.Semaphore(FILES_RECEIVED_MAX))
        try:
            await asyncio.wait_for(turns.acquire(), FILE_WAIT_SECONDS)
        except TimeoutError:
            after = (b"retry-after", b"60")
            raise ProblemWithHeaders("rate-limited", f"{FILES_RECEIVED_MAX} files are being received.", after) from None
        try:
            yield
        finally:
            turns.release()

    def in_memory(self, tenant: UUID) -> asyncio.Semaphore:
        """Return what is held while a file is in memory."""
        return self._in_memory.setdefault(tenant, asyncio.Semaphore(self._in_memory_max))
