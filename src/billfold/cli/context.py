"""The context of every command: settings, database, bank; and the error that ends a command.

The wiring provides the context: no command picks an adapter itself.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from pathlib import Path
from typing import Any, Protocol, TypeVar

from billfold.cli.tls import TlsFiles
from billfold.ledger.bank import Bank
from billfold.platform.crypto import Vault
from billfold.platform.database.connection import Connection, connect
from billfold.platform.database.pool import create_pool
from billfold.platform.settings.settings import Settings

StepReporter = Callable[[str], None]


class Database(Protocol):
    """The database of a bank: `dsn` is the address of the application, `owner_dsn` that of its owner."""

    dsn: str
    owner_dsn: str
    embedded: bool

    def restart_if_stopped(self) -> None:
        """Restart an embedded server that is gone."""


class CliContext(Protocol):
    """The parts of a bank that commands use. Its methods raise CliError."""

    @property
    def is_production(self) -> bool:
        """Tell whether this is a production bank, even if its other settings are wrong."""

    def settings(self) -> Settings:
        """Return the settings of the environment, in a sandbox with the ports that it was started with."""

    def configured(self, **changes: Any) -> Settings:
        """Return the settings of the environment with some replaced."""

    def configure_logging(self) -> None:
        """Configure logging from the environment."""

    def database(self, settings: Settings, report: StepReporter, /) -> AbstractContextManager[Database]:
        """Yield the database, started if it is the embedded one."""

    def running_database(self, settings: Settings, /) -> str:
        """Return the address of the database without starting anything."""

    def bank(self, settings: Settings, dsn: str, /) -> AbstractAsyncContextManager[Bank]:
        """Open the bank in a database."""

    def vault(self, settings: Settings, /) -> Vault:
        """Return the vault that seals and signs for the bank."""

    def certificates(self, settings: Settings, partners: Sequence[str], /) -> TlsFiles | None:
        """Return the certificate of the bank's hosts; None when a proxy has it."""

    async def initialize_database(self, settings: Settings, dsn: str, /) -> None:
        """Create the bank in a migrated database; existing data stays."""

    async def ingest_files(self, bank: Bank, /) -> int:
        """Process the files that have arrived from the rails; return how many there were."""


class CliError(Exception):
    """A command failed: the error and the next step."""

    def __init__(self, message: str, next_step: str) -> None:
        super().__init__(message)
        self.next_step = next_step


Result = TypeVar("Result")


def read_text_file(path: Path) -> str:
    """Return the text of a file. Raises CliError."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise CliError(f"{path} cannot be read: {error.strerror}.", "Name another file.") from None
    except UnicodeDecodeError:
        raise CliError(f"{path} is not a text.", "Name another file.") from None


async def with_connection(dsn: str, work: Callable[[Connection], Awaitable[Result]]) -> Result:
    """Do the work on a separate connection, as the user in the address."""
    conn = await connect(dsn)
    try:
        return await work(conn)
    finally:
        await conn.close()


def run_with_bank(context: CliContext, work: Callable[[Bank], Awaitable[Result]]) -> Result:
    """Open the bank, do the work, close it. Starts the embedded database if it is not running."""
    settings = context.settings()
    with context.database(settings, _ignore) as database:

        async def run() -> Result:
            async with context.bank(settings, database.dsn) as bank:
                return await work(bank)

        return asyncio.run(run())


def run_with_connection(context: CliContext, work: Callable[[Connection], Awaitable[Result]]) -> Result:
    """Connect to the database, do the work, disconnect. The bank does not have to exist yet."""
    settings = context.settings()
    with context.database(settings, _ignore) as database:

        async def run() -> Result:
            pool = await create_pool(database.dsn, max_size=2)
            async with pool, pool.acquire() as conn:
                return await work(conn)

        return asyncio.run(run())


def _ignore(_: str) -> None:
    pass
