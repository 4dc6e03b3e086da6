"""`billfold sandbox`: a whole bank on this machine, and the story of its first customer.

Starts the database, migrates and founds, makes a partner and certificates, runs server and
worker as processes of their own, plays the story once, and stays until it is told to stop.
"""

from __future__ import annotations

import asyncio
import fcntl
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple
from uuid import UUID

import httpx
import msgspec
import typer
from rich.markup import escape
from rich.panel import Panel

from billfold.cli.context import CannotGoOn, Database, Ground, ground_of
from billfold.cli.output import complain, console, done, say
from billfold.cli.serve import HTTPS, PLAIN, stop_on_signals, words_for
from billfold.platform.clock import monotonic
from billfold.platform.logs import configure_logs
from billfold.sandbox.credentials_file import SandboxFile, Stage, write_sandbox_file
from billfold.sandbox.process_supervisor import Supervisor
from billfold.sandbox.provisioning import settle_in
from billfold.sandbox.recording_client import RecordingClient
from billfold.sandbox.story import Ending, Story
from billfold.verify.cli import prove, show_report

if TYPE_CHECKING:
    from billfold.platform.settings.settings import Settings

UP_SECONDS = 60.0
_POLL_SECONDS = 0.1
_INTERRUPTED = (
    "The story was interrupted the last time and is not told twice over.",
    "Start over with `billfold sandbox --fresh`, or go on without it.",
)

Port = Annotated[int | None, typer.Option(min=1, max=65_535)]


class _Wish(NamedTuple):
    """What the person asked for on the command line."""

    exit_after_story: bool
    tell_story: bool
    changes: dict[str, object]


def sandbox(
    ctx: typer.Context,
    *,
    fresh: Annotated[bool, typer.Option("--fresh", help="Forget the last time.")] = False,
    seed: Annotated[
        int | None, typer.Option(help="Ids, and so the whole story, repeat with a seed.")
    ] = None,
    port: Port = None,
    http_port: Port = None,
    exit_after_story: Annotated[
        bool, typer.Option("--exit-after-story", help="End with status 0 after the story.")
    ] = False,
    no_story: Annotated[bool, typer.Option("--no-story", help="Start the bank only.")] = False,
) -> None:
    """Run a whole bank on this machine: over https, with a partner and a customer to try."""
    ground = ground_of(ctx)
    given = {"port": port, "http_port": http_port}
    ports: dict[str, object] = {name: value for name, value in given.items() if value is not None}
    settings = ground.settings(**ports)
    if seed is not None:
        settings = ground.settings(**ports, seed=f"sandbox {seed}".encode())
    if settings.is_production:
        raise CannotGoOn("This is set up as a real bank.", "Unset BILLFOLD_ENVIRONMENT.")
    _must_be_free(settings)
    wish = _Wish(exit_after_story, tell_story=not no_story, changes=ports)
    step = _Steps()
    with _alone_in(settings.state_dir):
        if fresh:
            _start_over(ground, settings)
        try:
            step("Starting the database")
            with ground.database(settings, step) as database:
                asyncio.run(_run(ground, settings, database, wish, step))
        finally:
            step.end()


async def _run(
    ground: Ground, settings: Settings, database: Database, wish: _Wish, step: _Steps
) -> None:
    configure_logs("ERROR")  # its parts have logs of their own
    stop = stop_on_signals()
    step("Migrating the database")
    await ground.migrate_up(database.dsn, step)
    step("Founding the bank")
    await ground.found(settings, database.dsn)
    home = await settle_in(ground, settings, database.dsn, step)
    logs = settings.state_dir / "logs"
    environment = ground.environment(settings, database.dsn, **wish.changes)
    supervisor = Supervisor(environment, complain, watch=database.revive)
    step("Starting the server")
    try:
        await supervisor.start("https", words_for(ground, HTTPS), logs / "https.log")
        await supervisor.start("plain http", words_for(ground, PLAIN), logs / "plain.log")
        worker = words_for(ground, "worker", "--with-parent")
        await supervisor.start("worker", worker, logs / "worker.log")
        await _until_up(home, logs, stop)
        step.end()
        if not stop.is_set():
            await _tell(ground, settings, database, home, wish)
        if not (stop.is_set() or wish.exit_after_story):
            _show_home(settings, home)
            await stop.wait()
    finally:
        await supervisor.stop()


async def _tell(
    ground: Ground, settings: Settings, database: Database, home: SandboxFile, wish: _Wish
) -> None:
    """Play the story once in the life of this bank, and prove the ledger after it."""
    if not wish.tell_story or home.story == "played":
        return
    if home.story == "playing":
        complain(*_INTERRUPTED)
        return
    began = monotonic()
    _note(settings, home, "playing")
    async with ground.bank(settings, database.dsn) as bank, bank.pool.acquire() as conn:
        ending = await asyncio.to_thread(_play, ground, settings, bank.seed)
        console.rule("The ledger proves itself", align="left", style="cyan")
        show_report(await prove(conn, vault=bank.vault))
    _note(settings, home, "played", *ending.pocket_ids)
    done(f"The story took {monotonic() - began:.1f} seconds.")


def _play(ground: Ground, settings: Settings, seed: bytes) -> Ending:
    transcript = settings.state_dir / "story.jsonl"
    http = ground.partner_http(settings)
    with RecordingClient(http, seed=seed, transcript=transcript) as client:
        return Story(client, console).play()


def _note(settings: Settings, home: SandboxFile, stage: Stage, *pocket_ids: UUID) -> None:
    noted = msgspec.structs.replace(home, story=stage, pocket_ids=pocket_ids)
    write_sandbox_file(settings.state_dir, noted)


def _start_over(ground: Ground, settings: Settings) -> None:
    if settings.database_url is not None:
        raise CannotGoOn(
            "--fresh does not empty a database of your own.",
            "Drop and create it, or unset BILLFOLD_DATABASE_URL.",
        )
    ground.wipe(settings.state_dir, say)


@contextmanager
def _alone_in(state_dir: Path) -> Iterator[None]:
    """Be the one sandbox of a state directory: a second would write its own addresses over ours."""
    try:
        state_dir.mkdir(parents=True, exist_ok=True)
        file = (state_dir / "sandbox.lock").open("a")
    except OSError as error:
        raise CannotGoOn(
            f"Nothing can be kept in {state_dir}: {error.strerror}.",
            "Set BILLFOLD_STATE_DIR to a folder that is yours.",
        ) from None
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CannotGoOn(
                f"A sandbox runs in {state_dir} already.",
                "Use it, stop it, or give this one a folder of its own by BILLFOLD_STATE_DIR.",
            ) from None
        yield


def _must_be_free(settings: Settings) -> None:
    """Refuse to start where something listens already."""
    if settings.port == settings.http_port:
        raise CannotGoOn(
            f"Port {settings.port} cannot serve https and plain http.", "Give another --http-port."
        )
    for name, port in (("port", settings.port), ("http-port", settings.http_port)):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((settings.host, port))
            except OSError:
                raise CannotGoOn(
                    f"Port {port} of {settings.host} is taken.",
                    f"Stop what listens there (another sandbox?), or give --{name}.",
                ) from None


async def _until_up(home: SandboxFile, logs: Path, stop: asyncio.Event) -> None:
    """Wait until the server answers over https."""
    began = monotonic()
    context = httpx.create_ssl_context(verify=home.ca_file, trust_env=False)
    async with httpx.AsyncClient(verify=context, trust_env=False) as client:
        while not stop.is_set():
            try:
                answer = await client.get(f"{home.base_url}/health")
            except httpx.TransportError:
                answer = None
            if answer is not None and answer.is_success:
                return
            if monotonic() - began > UP_SECONDS:
                raise CannotGoOn("The server does not come up.", f"Look into {logs / 'https.log'}.")
            await asyncio.sleep(_POLL_SECONDS)


def _show_home(settings: Settings, home: SandboxFile) -> None:
    lines = [
        f"API          {home.partner_url}",
        f"Reference    {home.docs_url}",
        f"Plain http   {home.http_url} (refused)",
        f"Username     {home.username}",
        f"Password     {home.password}",
        f"Secret       {home.shared_secret}",
        f"CA           {home.ca_file}",
        *_pages_of(settings, home),
        f"For programs {settings.state_dir / 'sandbox.json'}",
    ]
    say("")
    console.print(Panel("\n".join(lines), title="The bank is open", title_align="left"))
    say("[dim]Move its time with[/] billfold clock next[dim]; stop it with Ctrl-C.[/]")


def _pages_of(settings: Settings, home: SandboxFile) -> list[str]:
    if home.person is None:
        return []
    return [
        f"Pages        {settings.auth_origin}",
        f"Email        {home.person.email}",
        f"Password     {home.person.password}",
        f"App key      {home.person.totp_secret} (for an authenticator app)",
        *([] if home.colleague is None else [f"Colleague    {home.colleague.email} (approves)"]),
    ]


class _Steps:
    """What is being done right now, and how long everything before it took."""

    def __init__(self) -> None:
        self._status = console.status("")
        self._text = ""
        self._began = monotonic()
        self._status.start()

    def __call__(self, text: str) -> None:
        self._finish()
        self._text, self._began = text, monotonic()
        self._status.update(text)

    def end(self) -> None:
        """Take the line away; what comes next is printed below."""
        self._finish()
        self._status.stop()

    def _finish(self) -> None:
        if self._text:
            took = monotonic() - self._began
            done(f"{escape(self._text)} [dim]{took:.1f} s[/]")
            self._text = ""
