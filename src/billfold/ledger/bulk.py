"""Many commands, as of a file, in batches: memory stays small and other commands do not wait."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from billfold.ledger.bank import Bank
    from billfold.ledger.commands import Command
    from billfold.ledger.engine.pending_command import Answer

COMMANDS_PER_BATCH = 500


async def submit_in_lots(bank: Bank, commands: Iterable[Command]) -> AsyncIterator[tuple[Command, Answer]]:
    """Carry out commands and yield each with its answer, in order.

    Raises the first refusal or failure; what was carried out before it stays.
    """
    for batch in _batches(commands):
        answers = await bank.engine.submit_all(batch)
        for command, answer in zip(batch, answers, strict=True):
            if isinstance(answer, Exception):
                raise answer
            yield command, answer


def _batches(commands: Iterable[Command]) -> Iterator[list[Command]]:
    """Yield batches of so many commands, fewer of those with many references."""
    batch: list[Command] = []
    size = 0
    for command in commands:
        batch.append(command)
        size += max(1, len(command.references))
        if size >= COMMANDS_PER_BATCH:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
