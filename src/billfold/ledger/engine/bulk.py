"""Many commands, as of a file: in lots, so that neither memory nor other people wait for them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from billfold.ledger.bank import Bank
    from billfold.ledger.commands import Command
    from billfold.ledger.engine.pending_command import Answer

AT_ONCE = 500


async def submit_many(
    bank: Bank, commands: Iterable[Command]
) -> AsyncIterator[tuple[Command, Answer]]:
    """Carry out commands and yield each with its answer, in order.

    Raises the first refusal or failure; what was carried out before it stays.
    """
    for lot in _lots(commands):
        answers = await bank.engine.submit_all(lot)
        for command, answer in zip(lot, answers, strict=True):
            if isinstance(answer, Exception):
                raise answer
            yield command, answer


def _lots(commands: Iterable[Command]) -> Iterator[list[Command]]:
    """Yield lots of so many commands, fewer of those that look at many objects."""
    lot: list[Command] = []
    weight = 0
    for command in commands:
        lot.append(command)
        weight += max(1, len(command.references))
        if weight >= AT_ONCE:
            yield lot
            lot, weight = [], 0
    if lot:
        yield lot
