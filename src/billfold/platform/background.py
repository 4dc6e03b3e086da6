"""Background tasks that outlive a response, held by the bank until they end."""

import asyncio
from collections.abc import Coroutine


class BackgroundTasks:
    """The tasks of one owner; each is kept until it ends."""

    __slots__ = ("_tasks",)

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, work: Coroutine[None, None, None]) -> None:
        """Run something beside the caller."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Wait until all have ended, however they end."""
        await asyncio.gather(*self._tasks, return_exceptions=True)
