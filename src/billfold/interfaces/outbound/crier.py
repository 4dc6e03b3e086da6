"""The crier: tells teams of the money that came and went."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from billfold.domain import notifications
from billfold.engine.bank import Bank
from billfold.kit.clock import wall_now


class Crier:
    """An errand of the worker. What nobody was told of yet waits in the log of events."""

    __slots__ = ("_clock",)

    def __init__(self, clock: Callable[[], datetime] = wall_now) -> None:
        self._clock = clock

    async def __call__(self, bank: Bank) -> int:
        """Tell of what is new; return how many events that was."""
        return await notifications.tell_of_money(
            bank.pool, bank.vault, now=self._clock(), wait=False
        )
