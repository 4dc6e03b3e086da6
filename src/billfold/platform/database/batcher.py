"""One round trip for all items that arrive at the same moment.

While one batch is away the next gathers; nobody waits for a timer, and a lone caller is sent off
at once. A batch returns its results in the order of its items.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

BATCH_MAX = 500


class Batcher(Generic[Item, Result]):
    """Runs items as batches, one batch at a time, in order."""

    __slots__ = ("_limit", "_run", "_task", "_waiting")

    def __init__(self, run: Callable[[Sequence[Item]], Awaitable[Sequence[Result]]], *, limit: int = BATCH_MAX) -> None:
        self._run = run
        self._limit = limit
        self._waiting: list[tuple[Item, asyncio.Future[Result]]] = []
        self._task: asyncio.Task[None] | None = None

    def ask(self, item: Item) -> asyncio.Future[Result]:
        """Return what will hold the answer. An error of the batch is everybody's error."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Result] = loop.create_future()
        self._waiting.append((item, future))
        if self._task is None or self._task.done():
            self._task = loop.create_task(self._run_batches())
        return future

    async def settle(self) -> None:
        """Wait until nothing is under way."""
        while self._task is not None and not self._task.done():
            await asyncio.wait([self._task])

    async def _run_batches(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting[: self._limit], self._waiting[self._limit :]
            try:
                answers = await self._run([item for item, _ in batch])
            except Exception as error:  # noqa: BLE001 - handed on to everybody who waits
                for _, future in batch:
                    if not future.done():
                        future.set_exception(error)
            else:
                for (_, future), answer in zip(batch, answers, strict=True):
                    if not future.done():
                        future.set_result(answer)
