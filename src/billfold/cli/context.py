"""What the command line stands on: the wiring supplies it, so that no command picks an adapter."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import asyncio
    from datetime import datetime

    import httpx

    from billfold.audit.ports import Archive
    from billfold.events.schemas import StreamMessage
    from billfold.ledger.bank import Bank
    from billfold.platform.crypto import Vault
    from billfold.platform.network.tls import TlsFiles
    from billfold.platform.settings.settings import Settings

StepReporter = Callable[[str], None]


class CliError(Exception):
    """A command cannot do its work: what is wrong, and what to do next."""

    def __init__(self, message: str, next_step: str) -> None:
        super().__init__(message)
        self.next_step = next_step


class Database(Protocol):
    """A database that can be reached; the embedded one can be brought back when it died."""

    @property
    def dsn(self) -> str:
        """Its address."""

    @property
    def embedded(self) -> bool:
        """Whether it is the one that comes with Billfold."""

    def restart_if_stopped(self) -> None:
        """Start the embedded server again when it is gone. Blocks."""


class SandboxApi(Protocol):
    """The APIs of a running sandbox, called from outside like any program calls them."""

    def stream(self, after: int | None, kinds: Sequence[str]) -> Iterator[StreamMessage]:
        """Follow the stream of events; it is opened again where it was cut. Raises CliError."""

    def bank_time(self) -> datetime:
        """Return what the sandbox's clock shows. Raises CliError."""

    def simulate(self, event: Mapping[str, object]) -> None:
        """Tell whoever subscribed that something happened. Raises CliError."""


class CliContext(Protocol):
    """Everything a command may ask for."""

    def settings(self, **changes: object) -> Settings:
        """Return the settings of the environment with some replaced. Raises SettingsError."""

    def database(self, settings: Settings, report: StepReporter) -> AbstractContextManager[Database]:
        """Lend the database, started when it is the embedded one. Blocks. Raises CliError."""

    def bank(self, settings: Settings, dsn: str) -> AbstractAsyncContextManager[Bank]:
        """Open the bank in a database. Raises CliError before it is founded and migrated."""

    async def migrate_up(self, dsn: str, report: StepReporter) -> list[str]:
        """Bring the schema up to this release; return the names of the steps."""

    async def migrate_down(self, dsn: str, to: int) -> list[str]:
        """Take steps of the schema back, and what they held with them."""

    async def pending_migrations(self, dsn: str) -> list[str]:
        """Return the names of the steps that are still to be done."""

    async def initialize_database(self, settings: Settings, dsn: str) -> None:
        """Found the bank in a migrated database: seed, market, clock, house. May be repeated."""

    def certificates(self, settings: Settings, partners: Sequence[str]) -> TlsFiles | None:
        """Return the certificate of the bank's hosts, made in a sandbox; None behind a proxy."""

    def auth_openapi(self, settings: Settings) -> bytes:
        """Return the OpenAPI document of the authorization server."""

    def openapi(self, settings: Settings, *, everything: bool) -> bytes:
        """Return the OpenAPI document of the Partner API, with deprecated operations or without."""

    def customer_openapi(self, settings: Settings) -> bytes:
        """Return the OpenAPI document of the Customer API."""
        ...

    def run_https(self, settings: Settings, tls: TlsFiles | None) -> None:
        """Serve the Partner API until a signal ends it. Blocks."""

    async def run_plain(self, settings: Settings, stop: asyncio.Event) -> None:
        """Tell whoever comes over plain http to use https, until told to stop."""

    async def work(self, bank: Bank, stop: asyncio.Event) -> None:
        """Do what is due until told to stop."""

    async def ingest_files(self, bank: Bank) -> int:
        """Take the files that have arrived from the rails; return how many there were."""

    def vault(self, settings: Settings) -> Vault:
        """Return what seals and vouches: it holds the keys of the bank."""

    def archive(self, settings: Settings) -> Archive:
        """Return where the seals of the audit log are carried to."""

    def environment(self, settings: Settings, dsn: str, **changes: object) -> dict[str, str]:
        """Return the environment in which a child process sees these settings and changes."""

    def partner_http(self, settings: Settings) -> httpx.Client:
        """Return a client that signs as the partner of the sandbox that runs. Raises CliError."""

    def sandbox_api(self, settings: Settings, *, customer: bool) -> AbstractContextManager[SandboxApi]:
        """Call the sandbox that runs: its Partner API, or its Customer API. Raises CliError."""

    def program(self) -> Sequence[str]:
        """Return the words that start this program, for a child process."""

    def delete_state(self, state_dir: Path, report: StepReporter) -> None:
        """Stop and remove the embedded database of a state directory. Raises CliError."""
