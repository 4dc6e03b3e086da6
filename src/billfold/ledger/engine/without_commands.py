"""An engine beside reads that may lack what a command has just written: it takes no commands."""

import asyncio

from typing_extensions import override

from billfold.ledger.commands import Command
from billfold.ledger.engine.engine import Engine
from billfold.ledger.engine.pending_command import Answer
from billfold.platform.database.replica import ReplicaBehind


class EngineWithoutCommands(Engine):
    """The engine of a bank, all of whose state it shares."""

    def __init__(self, engine: Engine) -> None:
        self.__dict__ = engine.__dict__

    @override
    def _enqueue(self, command: Command) -> asyncio.Future[Answer]:
        raise ReplicaBehind("A command is carried out on the primary.")
