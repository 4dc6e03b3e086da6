"""Engines that stand in for a bank's own while one request is handled: one previews, one carries out what was shown."""

from collections.abc import Sequence
from copy import copy

import msgspec
from typing_extensions import override

from billfold.ledger.bank import Bank
from billfold.ledger.commands import Command
from billfold.ledger.dry_run import DryRun, dry_run
from billfold.ledger.effects import effect_of
from billfold.ledger.engine.engine import Engine
from billfold.ledger.engine.pending_command import Answer, KeptResponse
from billfold.platform.errors import BillfoldError, InvalidInput, InvariantError


class Previewed(Exception):
    """The command that a request would have submitted, what it would do, and the digest of that."""

    def __init__(self, command: Command, run: DryRun) -> None:
        super().__init__(type(command).__name__)
        self.command, self.run = command, run
        self.effect = effect_of(run.book.draft, run.lengths[0], run.outcome, command.bound(run.book, run.now))


class _StandIn(Engine):
    """An engine in place of another, whose state it shares."""

    def __init__(self, bank: Bank) -> None:
        vars(self).update(vars(bank.engine))
        self._bank = bank

    @override
    async def submit_all(self, commands: Sequence[Command]) -> list[Answer | BillfoldError]:
        raise InvariantError("One command is previewed, not several.")


class PreviewEngine(_StandIn):
    """Runs the command on books that are dropped, and ends the request with Previewed."""

    @override
    async def submit(self, command: Command, response: KeptResponse | None = None) -> Answer:
        if getattr(command, "later", False):
            raise InvalidInput.at(
                "body", "async_mode", msg="is not allowed in a preview: it shows what is done at once"
            )
        async with (
            self._bank.pool.acquire() as conn,
            conn.transaction(isolation="repeatable_read", readonly=True),
        ):
            raise Previewed(command, await dry_run(conn, self._bank, command))


class ConfirmingEngine(_StandIn):
    """Submits the first command with the effect that was shown, and those that follow from it as they are."""

    def __init__(self, bank: Bank, effect: bytes) -> None:
        super().__init__(bank)
        self._effect: bytes | None = effect

    @override
    async def submit(self, command: Command, response: KeptResponse | None = None) -> Answer:
        expected, self._effect = self._effect, None
        return await self._bank.engine.submit(msgspec.structs.replace(command, expected=expected), response)


def standing_in(bank: Bank, engine: Engine) -> Bank:
    """Return the same bank with another engine."""
    other = copy(bank)
    other.engine = engine
    return other
