"""Many commands, as of a file: in lots, so that neither memory nor other people wait for them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from billfold.engine.bank import Bank
    from billfold.engine.job import Answer
    from billfold.flows.command import Command

AT_ONCE = 500


async def submit_many(
    bank: Bank, commands: Iterable[Command]
) -> AsyncIterator[tuple[Command, Answer]]:
    """Carry out commands and yield each with its answer, in order.

    Raises the first refusal or failure; what was carried out before it stays.
    """
    waiting: Iterator[Command] = iter(commands)
    while lot := list(islice(waiting, AT_ONCE)):
        answers = await bank.engine.submit_all(lot)
        for command, answer in zip(lot, answers, strict=True):
            if isinstance(answer, Exception):
                raise answer
            yield command, answer
