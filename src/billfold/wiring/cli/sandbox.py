"""`billfold sandbox`: a whole bank on this machine, and the story of its first customer.

Starts the database, migrates it, initializes the bank, creates a partner and certificates, runs server
and worker as separate processes, plays the story once, and runs until a signal stops it.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import socket
import sys
import webbrowser
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, NamedTuple
from uuid import UUID

import httpx
import msgspec
import typer
from rich.markup import escape
from rich.panel import Panel

from billfold.cli.command import console, key_value_table, print_error, print_line, print_success, table
from billfold.cli.context import CliError, Database, with_connection
from billfold.cli.process_supervisor import Supervisor, stop_on_signals
from billfold.data_keys.keys import DataKeys
from billfold.migrations import runner
from billfold.monitoring.management_server import manage_children
from billfold.platform.clock import monotonic
from billfold.platform.settings.settings import Settings, read_settings
from billfold.sandbox.card_processor.launch import card_host_command, listen_to_network
from billfold.sandbox.chain.launch import start_local_chain
from billfold.sandbox.cli.control import group, run_task
from billfold.sandbox.cli.trust import trust
from billfold.sandbox.control.tasks import CARD_PROCESSOR, DEALERS, WORKER, RunningSandbox, perform_tasks
from billfold.sandbox.dealers.launch import dealers_command, listen_to_bank
from billfold.sandbox.forks.copies import BankCopies
from billfold.sandbox.forks.lease import SANDBOX_LOCK
from billfold.sandbox.line_process import environment_of_others
from billfold.sandbox.provisioning import prepare_sandbox
from billfold.sandbox.routes.catalogue import magic_values, simulations
from billfold.sandbox.running_sandbox import (
    SandboxFile,
    StoryStage,
    partner_http,
    read_sandbox_file,
    write_sandbox_file,
)
from billfold.sandbox.scenarios.player import SCENARIOS
from billfold.sandbox.scenarios.story import RecordingClient, Story
from billfold.wiring.cli.serve import check_ports, child_command_line, find_silent_port, start_https
from billfold.wiring.cli.verify import print_report, verify_with_progress
from billfold.wiring.cli_context import Wiring

UP_SECONDS = 60.0
_POLL_SECONDS = 0.1
_STORY_PLAYED = "The story has been played in this bank. `billfold sandbox --fresh` starts over and plays it again."
_STORY_INTERRUPTED = (
    "The story was interrupted the last time and is not played again.",
    "Start over with `billfold sandbox --fresh`, or continue without it.",
)

Port = Annotated[int | None, typer.Option(min=1, max=65_535)]


class _Start(NamedTuple):
    """One start of the sandbox. `changes` are the settings that the command line and the simulated dealers override."""

    context: Wiring
    settings: Settings
    database: Database
    step: _StepTimer
    changes: Mapping[str, object]
    dealers: socket.socket | None
    play_story: bool
    exit_after_story: bool
    verbose: bool

    async def run(self, listener: socket.socket) -> None:
        """Run it, with a management port if configured."""
        checked = manage_children(self.settings, self.database.dsn, partial(find_silent_port, self.settings))
        async with checked as (_, counting):
            await self._run_processes(listener, counting)

    async def _run_processes(self, listener: socket.socket, counting: Mapping[str, str]) -> None:
        context, settings, database = self.context, self.settings, self.database
        stop = stop_on_signals()
        copies = context.copies(settings, database.owner_dsn)
        await copies.recover()
        is_new = read_sandbox_file(settings.state_dir) is None
        saved = await self._prepare(listener.getsockname()[1])
        if is_new and not self.play_story:
            await copies.keep_opening()
        environment = context.environment(settings, database.dsn, **self.changes) | dict(counting)
        supervisor = Supervisor(environment, print_error, watch=database.restart_if_stopped)
        plain = await context.serve_plain(settings)
        try:
            chain = await self._start_processes(supervisor, listener)
            await _wait_until_up(saved, settings.state_dir / "logs", stop)
            self.step.end()
            if self.play_story and not stop.is_set():
                saved = await self._play_story_once(copies, saved)
            if not (stop.is_set() or self.exit_after_story):
                running = RunningSandbox(context, settings, database, supervisor=supervisor, copies=copies, saved=saved)
                async with perform_tasks(settings.state_dir, copies, running):
                    _print_credentials(settings, saved, chain)
                    with _opening_on_enter(f"{saved.auth_url}/sandbox"):
                        await stop.wait()
        finally:
            plain.close()
            await supervisor.stop()

    async def _prepare(self, card_port: int) -> SandboxFile:
        """Migrate the database, and return the operator's context of the bank."""
        context, settings, database, step = self.context, self.settings, self.database, self.step
        step("Migrating the database")
        await with_connection(database.owner_dsn, runner.up)
        step("Initializing the bank")
        await context.initialize_database(settings, database.owner_dsn)
        shared = {name: str(self.changes[name]) for name in ("dealers", "dealer_sessions") if name in self.changes}
        return await prepare_sandbox(context, settings, database.dsn, card_port=card_port, shared=shared, report=step)

    async def _start_processes(self, supervisor: Supervisor, listener: socket.socket) -> str:
        """Start every process of the sandbox; write the address of its chain."""
        logs = self.settings.state_dir / "logs"
        chain = "the chains of BILLFOLD_CHAINS"
        if self.settings.chains is None:
            chain = await start_local_chain(supervisor, self.settings.state_dir)
        self.step("Starting the server")
        await start_https(supervisor, logs)
        await supervisor.start(WORKER, child_command_line("worker", "--with-parent"), logs / "worker.log")
        host = card_host_command(self.settings)
        outside = environment_of_others()
        await supervisor.start(
            CARD_PROCESSOR, host, logs / "card_processor.log", environment=outside, listener=listener
        )
        if self.dealers is not None:
            command = dealers_command(self.settings)
            await supervisor.start(DEALERS, command, logs / "dealers.log", environment=outside, listener=self.dealers)
        return chain

    async def _play_story_once(self, copies: BankCopies, saved: SandboxFile) -> SandboxFile:
        """Play the story once per bank, verify the ledger after it, and keep a fork for a reset."""
        if saved.story == "played":
            if self.exit_after_story:
                print_success(_STORY_PLAYED)
            return saved
        if saved.story == "playing":
            print_error(*_STORY_INTERRUPTED)
            return saved
        began = monotonic()
        _save_stage(self.settings, saved, "playing")
        async with self.context.bank(self.settings, self.database.dsn) as bank, bank.pool.acquire() as conn:
            pocket_ids = await asyncio.to_thread(_play, self.settings, saved, bank.seed)
            console.rule("Verifying the ledger", align="left", style="cyan")
            report = await verify_with_progress(conn, vault=bank.vault, keys=bank.ports[DataKeys])
            print_report(report, with_counts=self.verbose)
        played = _save_stage(self.settings, saved, "played", *pocket_ids)
        print_success(f"The story took {monotonic() - began:.1f} seconds.")
        async with copies.pause():
            await copies.keep_opening()
        return played


@group.without_command
def sandbox(
    context: Wiring,
    *,
    fresh: Annotated[bool, typer.Option("--fresh", help="Delete the previous bank.")] = False,
    seed: Annotated[int | None, typer.Option(help="The same seed repeats all ids, and so the whole story.")] = None,
    port: Port = None,
    http_port: Port = None,
    exit_after_story: Annotated[
        bool, typer.Option("--exit-after-story", help="Exit with status 0 after the story.")
    ] = False,
    no_story: Annotated[bool, typer.Option("--no-story", help="Start the bank only.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Print how many rows are verified, too.")] = False,
) -> None:
    """Run a whole bank on this machine: over https, with a partner and a customer to try."""
    ports = {"port": port, "http_port": http_port}
    changes: dict[str, object] = {name: value for name, value in ports.items() if value is not None}
    settings = context.configured(**changes)
    if seed is not None:
        settings = replace(settings, seed=f"sandbox {seed}".encode())
        changes["seed"] = f"sandbox {seed}"
    if settings.is_production:
        raise CliError("This is configured as a production bank.", "Unset BILLFOLD_ENVIRONMENT.")
    check_ports(settings)
    step = _StepTimer()
    with _sandbox_lock(settings.state_dir):
        if fresh:
            _reset(context, settings)
        try:
            step("Starting the database")
            with (
                context.database(settings, step) as database,
                listen_to_network(settings) as listener,
                listen_to_bank() as to_dealers,
            ):
                simulated = context.simulated_dealers(to_dealers.getsockname()[1])
                settings, changes = replace(settings, **read_settings(simulated)), {**changes, **simulated}
                running = (context, settings, database, step, changes, to_dealers if simulated else None)
                asyncio.run(_Start(*running, not no_story, exit_after_story, verbose).run(listener))
        finally:
            step.end()


group.command("trust")(trust)


@group.command("play bad-week", "play --list")
def play(
    context: Wiring,
    name: Annotated[str, typer.Argument(help="The scenario.")] = "",
    *,
    list_all: Annotated[bool, typer.Option("--list", help="List the scenarios.")] = False,
) -> str | None:
    """Play a scenario: real objects and events with its own customer, while the clock advances."""
    if list_all:
        console.print(key_value_table((each.name, each.description) for each in SCENARIOS.values()))
        return None
    if name not in SCENARIOS:
        raise CliError(f"There is no scenario {name!r}.", "See `billfold sandbox play --list`.")
    run_task(context, lambda api: api.sandbox_play_scenario(name))
    return f"{name} has been played. `billfold sandbox reset` returns to the initial bank."


@group.command("simulations", "simulations --json")
def list_simulations(
    *, as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON, for programs.")] = False
) -> None:
    """List the simulations of a sandbox, and the magic values of its counterparts."""
    items, values = simulations(), magic_values()
    if as_json:
        listed = [
            {name: value for name, value in each.items() if name != "object_type"}
            for each in msgspec.to_builtins(items)
        ]
        typer.echo(msgspec.json.encode({"items": listed, "magic_values": values}))
        return
    rows = [(each.path.removeprefix("/api/v1/sandbox/"), each.summary, ", ".join(each.events)) for each in items]
    console.print(table("Simulations, below /api/v1/sandbox/", ("path", "what happens", "events"), rows))
    obeyed = [(each.field, each.value, each.effect) for each in values]
    console.print(table("Magic values", ("field", "value", "effect"), obeyed))


def _play(settings: Settings, saved_sandbox: SandboxFile, seed: bytes) -> tuple[UUID, UUID]:
    transcript = settings.state_dir / "story.jsonl"
    with RecordingClient(partner_http(saved_sandbox), seed=seed, transcript=transcript) as client:
        return Story(client, console).play()


def _save_stage(settings: Settings, saved_sandbox: SandboxFile, stage: StoryStage, *pocket_ids: UUID) -> SandboxFile:
    updated = msgspec.structs.replace(saved_sandbox, story=stage, pocket_ids=pocket_ids)
    write_sandbox_file(settings.state_dir, updated)
    return updated


def _reset(context: Wiring, settings: Settings) -> None:
    if settings.database_url is not None:
        raise CliError(
            "--fresh does not empty an external database.", "Drop and create it, or unset BILLFOLD_DATABASE_URL."
        )
    context.delete_state(settings.state_dir, print_line)


@contextmanager
def _sandbox_lock(state_dir: Path) -> Iterator[None]:
    """Lock the state directory: a second sandbox would overwrite the addresses of the first."""
    try:
        state_dir.mkdir(parents=True, exist_ok=True)
        file = (state_dir / SANDBOX_LOCK).open("a")
    except OSError as error:
        raise CliError(
            f"{state_dir} is not writable: {error.strerror}.",
            "Set BILLFOLD_STATE_DIR to a folder that you can write to.",
        ) from None
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CliError(
                f"A sandbox already runs in {state_dir}.",
                "Use it, stop it, or set BILLFOLD_STATE_DIR to another folder.",
            ) from None
        yield


async def _wait_until_up(saved_sandbox: SandboxFile, logs: Path, stop: asyncio.Event) -> None:
    """Wait until the server responds over https."""
    began = monotonic()
    context = httpx.create_ssl_context(verify=saved_sandbox.ca_file, trust_env=False)
    async with httpx.AsyncClient(verify=context, trust_env=False) as client:
        while not stop.is_set():
            try:
                answer = await client.get(f"{saved_sandbox.base_url}/health")
            except httpx.TransportError:
                answer = None
            if answer is not None and answer.is_success:
                return
            if monotonic() - began > UP_SECONDS:
                raise CliError("The server does not start.", f"See {logs / 'https.log'}.")
            await asyncio.sleep(_POLL_SECONDS)


@contextmanager
def _opening_on_enter(url: str) -> Iterator[None]:
    """Open a page in the browser whenever the person at the terminal presses Enter."""
    loop = asyncio.get_running_loop()
    if not sys.stdin.isatty():
        yield
        return

    def read() -> None:
        # A process in the background that reads from its terminal is stopped.
        is_in_front = os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
        if is_in_front and sys.stdin.readline():
            loop.run_in_executor(None, webbrowser.open, url)
        else:
            loop.remove_reader(sys.stdin)

    print_line("Press Enter to open the control room in a browser: it signs you in as anybody there.")
    print_line("[dim]So that browsers trust its certificate, run once:[/] billfold sandbox trust")
    loop.add_reader(sys.stdin, read)
    try:
        yield
    finally:
        loop.remove_reader(sys.stdin)


def _print_credentials(settings: Settings, saved_sandbox: SandboxFile, chain: str) -> None:
    network = saved_sandbox.card_network
    lines = [
        f"API          {saved_sandbox.partner_url}",
        f"Reference    {saved_sandbox.docs_url}",
        f"             {saved_sandbox.customer_url}/docs/ (Customer API)",
        f"Plain http   {saved_sandbox.http_url} (rejected)",
        *([f"ISO 8583     {network.host}:{network.port}"] if network else []),
        f"Username     {saved_sandbox.username}",
        f"Password     {saved_sandbox.password}",
        f"Secret       {saved_sandbox.shared_secret}",
        f"CA           {saved_sandbox.ca_file}",
        f"Pages        {saved_sandbox.auth_url}",
        f"Control room {saved_sandbox.auth_url}/sandbox (clock, forks, scenarios, simulations)",
        f"Email        {saved_sandbox.person.email}",
        f"Password     {saved_sandbox.person.password}",
        f"App key      {saved_sandbox.person.totp_secret}",
        "             for an authenticator app: TOTP, 6 digits every 30 s; or here:",
        f"             oathtool --totp -b {saved_sandbox.person.totp_secret}",
        f"Colleague    {saved_sandbox.colleague.email} (approves)",
        *(f"Operator     {each.email}" for each in saved_sandbox.operators),
        f"Chain        {chain}",
        f"Credentials  {settings.state_dir / 'sandbox.json'}",
    ]
    print_line("")
    console.print(Panel("\n".join(lines), title="The bank is open", title_align="left"))
    print_line("[dim]Move its time with[/] billfold clock next[dim]; stop it with Ctrl-C.[/]")


class _StepTimer:
    """Shows the current step, and the duration of earlier ones."""

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
        """Clear the line; later output is printed below."""
        self._finish()
        self._status.stop()

    def _finish(self) -> None:
        if self._text:
            seconds = monotonic() - self._began
            print_success(f"{escape(self._text)} [dim]{seconds:.1f} s[/]")
            self._text = ""
