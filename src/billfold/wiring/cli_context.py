"""What the command line stands on, made of the real parts."""

from __future__ import annotations

import asyncio
import shutil
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import asyncpg
import httpx
import msgspec
import psutil

from billfold.access.auth_server.app import auth_document
from billfold.audit.worker import AuditSealer
from billfold.cli.context import CliError, Database, StepReporter
from billfold.events.email.worker import EmailSender
from billfold.events.notifications.worker import NotificationWorker, failing_notifier
from billfold.events.webhooks.worker import WebhookDispatcher
from billfold.http.customer_api.app import customer_document
from billfold.http.edge.https_required import serve_plain
from billfold.http.edge.serve import https_server
from billfold.http.partner_api.app import partner_document, partner_operations
from billfold.migrations import runner
from billfold.payments.on_us.worker import execute_all_pending
from billfold.platform.clock import wall_now
from billfold.platform.network.tls import TlsFiles, ensure_certificates
from billfold.platform.postgres import embedded as embedded_postgres
from billfold.platform.postgres.programs import EmbeddedPostgresError
from billfold.platform.settings.settings import Settings, variable_name
from billfold.sandbox.credentials_file import require_sandbox_file
from billfold.sandbox.routes.routes import sandbox_operations
from billfold.sandbox.sandbox_client import SandboxClient, open_sandbox_client, partner_http
from billfold.wiring.open_bank import initialize_database, open_bank, vault_of
from billfold.wiring.providers import SEALS, archive_of, email_transport_of, webhook_client_of
from billfold.wiring.scheduled_jobs import file_receivers
from billfold.wiring.worker import Worker

if TYPE_CHECKING:
    from billfold.audit.file_archive import FileArchive
    from billfold.ledger.bank import Bank
    from billfold.platform.crypto import Vault
    from billfold.platform.database.pool import Connection

DATABASE = "billfold"
APP = "billfold.wiring.server:partner_app"
CONNECT_TIMEOUT_SECONDS = 10.0
_REFUSED = (OSError, asyncpg.PostgresError, TimeoutError)

Result = TypeVar("Result")


class EmbeddedDatabase:
    """The database that comes with Billfold, held by this process."""

    embedded = True

    def __init__(self, state_dir: Path, report: StepReporter) -> None:
        self._state_dir = state_dir
        self._server = embedded_postgres.start(state_dir, progress=report)
        try:
            self.dsn = asyncio.run(self._server.create_database(DATABASE))
        except BaseException:  # Ctrl-C too, which must not leave a server behind
            self.close()
            raise

    def restart_if_stopped(self) -> None:
        """Start the server again when it is gone; what was committed is there."""
        if psutil.pid_exists(self._server.pid):
            return
        try:
            dead, self._server = self._server, embedded_postgres.start(self._state_dir)
        except EmbeddedPostgresError as error:
            raise CliError(f"The embedded database does not come back: {error}.", "It is tried again.") from error
        dead.hold.release()

    def close(self) -> None:
        """Let go; the last to do so stops the server."""
        embedded_postgres.stop(self._server)


class ExternalDatabase:
    """A database that somebody else runs."""

    embedded = False

    def __init__(self, dsn: str) -> None:
        self.dsn = dsn
        asyncio.run(self._check_connection())

    def restart_if_stopped(self) -> None:
        """Leave it to whoever runs it."""

    async def _check_connection(self) -> None:
        try:
            await (await asyncpg.connect(self.dsn, timeout=CONNECT_TIMEOUT_SECONDS)).close()
        except _REFUSED as error:
            raise CliError(f"The database does not answer: {error}", "Check BILLFOLD_DATABASE_URL.") from error


class Wiring:
    """Everything a command needs, made of the real parts."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ

    def settings(self, **changes: Any) -> Settings:
        """Return the settings of the environment with some replaced."""
        return replace(Settings.from_env(self._environ), **changes)

    @contextmanager
    def database(self, settings: Settings, report: StepReporter) -> Iterator[Database]:
        """Lend the database, started when it is the embedded one."""
        if settings.database_url is not None:
            yield ExternalDatabase(settings.database_url)
            return
        try:
            embedded = EmbeddedDatabase(settings.state_dir, report)
        except EmbeddedPostgresError as error:
            raise CliError(
                f"The embedded database does not start: {error}",
                f"Look into {settings.state_dir}, or set BILLFOLD_STATE_DIR to another folder.",
            ) from error
        try:
            yield embedded
        finally:
            embedded.close()

    def bank(self, settings: Settings, dsn: str) -> AbstractAsyncContextManager[Bank]:
        """Open the bank in a database."""
        return open_bank(settings, dsn)

    async def migrate_up(self, dsn: str, report: StepReporter) -> list[str]:
        """Bring the schema up to this release."""
        return await _migrated(dsn, lambda conn: runner.up(conn, report))

    async def migrate_down(self, dsn: str, to: int) -> list[str]:
        """Take steps of the schema back."""
        return await _migrated(dsn, lambda conn: runner.down(conn, to))

    async def pending_migrations(self, dsn: str) -> list[str]:
        """Return what is still to be done."""
        return await _migrated(dsn, runner.pending)

    async def initialize_database(self, settings: Settings, dsn: str) -> None:
        """Found the bank in a migrated database."""
        await initialize_database(settings, dsn)

    def certificates(self, settings: Settings, partners: Sequence[str]) -> TlsFiles | None:
        """Return the certificate of the bank's hosts; None when a proxy has it."""
        if settings.tls_certificate is not None and settings.tls_key is not None:
            return TlsFiles(settings.tls_certificate, settings.tls_certificate, settings.tls_key)
        if settings.behind_proxy:
            return None
        return ensure_certificates(settings.state_dir, wall_now(), domain=settings.domain, partners=partners)

    def auth_openapi(self, settings: Settings) -> bytes:
        """Return the OpenAPI document of the authorization server."""
        return msgspec.json.format(msgspec.json.encode(auth_document(settings)))

    def openapi(self, settings: Settings, *, everything: bool) -> bytes:
        """Return the OpenAPI document of the Partner API."""
        sandbox = () if settings.is_production else sandbox_operations()
        document = partner_document(settings, partner_operations(sandbox), include_deprecated=everything)
        return msgspec.json.format(msgspec.json.encode(document))

    def customer_openapi(self, settings: Settings) -> bytes:
        """Return the OpenAPI document of the Customer API."""
        return msgspec.json.format(msgspec.json.encode(customer_document(settings)))

    def run_https(self, settings: Settings, tls: TlsFiles | None) -> None:
        """Serve the Partner API until a signal ends it. Blocks."""
        server = https_server(
            APP,
            host=settings.host,
            port=settings.port,
            workers=settings.workers,
            certificate=None if tls is None else tls.certificate,
            key=None if tls is None else tls.key,
        )
        server.serve()

    async def run_plain(self, settings: Settings, stop: asyncio.Event) -> None:
        """Redirect plain HTTP to HTTPS until `stop` is set."""
        server = await serve_plain(settings.host, settings.http_port, https_host=f"{settings.domain}:{settings.port}")
        async with server:
            await stop.wait()

    async def work(self, bank: Bank, stop: asyncio.Event) -> None:
        """Run the worker until `stop` is set."""
        tasks = (
            NotificationWorker(),
            EmailSender(email_transport_of(bank.settings)),
            AuditSealer(archive_of(bank.settings)),
        )
        worker = Worker(bank, execute_all_pending, *file_receivers(), *tasks)
        client, on_failing_callback = webhook_client_of(bank.settings), failing_notifier(bank.vault)
        dispatcher = WebhookDispatcher(bank.pool, bank.vault, client, on_failing=on_failing_callback)
        async with asyncio.TaskGroup() as group:
            group.create_task(worker.run(stop))
            group.create_task(dispatcher.run(stop))

    async def ingest_files(self, bank: Bank) -> int:
        """Take the files that have arrived from the rails; return how many there were."""
        return sum([await ingest(bank) for ingest in file_receivers()])

    def vault(self, settings: Settings) -> Vault:
        """Return what seals and vouches."""
        return vault_of(settings)

    def archive(self, settings: Settings) -> FileArchive:
        """Return where the seals of the audit log are carried to."""
        return archive_of(settings)

    def environment(self, settings: Settings, dsn: str, **changes: object) -> dict[str, str]:
        """Return the environment in which a child process sees these settings."""
        overrides = {variable_name(name): str(value) for name, value in changes.items()}
        address = {variable_name("database_url"): dsn, "PYTHONUNBUFFERED": "1"}
        state = {variable_name("state_dir"): str(settings.state_dir)}
        return {**self._environ, **overrides, **state, **address}

    def sandbox_api(self, settings: Settings, *, customer: bool) -> AbstractContextManager[SandboxClient]:
        """Call a running sandbox with the credentials it wrote down."""
        return open_sandbox_client(require_sandbox_file(settings.state_dir), customer=customer)

    def partner_http(self, settings: Settings) -> httpx.Client:
        """Return a client that signs as the sandbox's partner."""
        return partner_http(require_sandbox_file(settings.state_dir))

    def program(self) -> Sequence[str]:
        """Return the words that start this program, for a child process."""
        return (sys.executable, "-m", "billfold")

    def delete_state(self, state_dir: Path, report: StepReporter) -> None:
        """Stop and remove the embedded database of a state directory, and the files about it.

        Files received and uploaded are removed too: the next bank would take them for its own.
        """
        folder = state_dir / "postgres"
        if folder.exists():
            report("Removing the database of the last time")
            server = embedded_postgres.start(state_dir)
            if not embedded_postgres.stop(server):
                raise CliError("Another process uses the database.", "Stop the other sandbox first.")
            shutil.rmtree(folder)
        for name in ("sandbox.json", "story.jsonl", "encryption.key", SEALS):
            (state_dir / name).unlink(missing_ok=True)
        for name in ("rails", "files", "mail"):
            shutil.rmtree(state_dir / name, ignore_errors=True)


async def _migrated(dsn: str, work: Callable[[Connection], Awaitable[Result]]) -> Result:
    conn = await asyncpg.connect(dsn)
    try:
        return await work(conn)
    finally:
        await conn.close()
