"""What every command builds on: the settings, the database, the bank; and the error that ends it.

The wiring provides the context: no command picks an adapter itself.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import Any, Protocol

from billfold.ledger.bank import Bank
from billfold.platform.crypto import Vault
from billfold.platform.network.tls import TlsFiles
from billfold.platform.settings.settings import Settings

StepReporter = Callable[[str], None]


class Database(Protocol):
    """The database of a bank: `dsn` is the address of the application, `owner_dsn` that of its owner."""

    dsn: str
    owner_dsn: str
    embedded: bool

    def restart_if_stopped(self) -> None:
        """Start an embedded server again when it is gone."""


class CliContext(Protocol):
    """The parts of a bank that commands use. Its methods raise CliError."""

    @property
    def is_production(self) -> bool:
        """Tell whether this is a real bank, however wrong its other settings may be."""

    def settings(self) -> Settings:
        """Return the settings of the environment, in a sandbox with the ports that it was started with."""

    def configured(self, **changes: Any) -> Settings:
        """Return the settings of the environment with some replaced."""

    def configure_logging(self) -> None:
        """Log as the environment says."""

    def database(self, settings: Settings, report: StepReporter, /) -> AbstractContextManager[Database]:
        """Lend the database, started when it is the embedded one."""

    def running_database(self, settings: Settings, /) -> str:
        """Return the address of the database as it is: nothing is started."""

    def bank(self, settings: Settings, dsn: str, /) -> AbstractAsyncContextManager[Bank]:
        """Open the bank in a database."""

    def vault(self, settings: Settings, /) -> Vault:
        """Return what seals and vouches for the bank."""

    def certificates(self, settings: Settings, partners: Sequence[str], /) -> TlsFiles | None:
        """Return the certificate of the bank's hosts; None when a proxy has it."""

    async def initialize_database(self, settings: Settings, dsn: str, /) -> None:
        """Create the bank in a migrated database; what is there already stays."""

    async def ingest_files(self, bank: Bank, /) -> int:
        """Take the files that have arrived from the rails; return how many there were."""


class CliError(Exception):
    """A command cannot do its work: what is wrong, and what to do next."""

    def __init__(self, message: str, next_step: str) -> None:
        super().__init__(message)
        self.next_step = next_step
