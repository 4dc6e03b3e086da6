"""`billfold sandbox fork`, `rewind`, `reset` and the like: tasks requested of a running sandbox."""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Annotated, Any

import httpx
import msgspec
import typer
from rich.markup import escape

from billfold.cli.command import CommandGroup, Row, console, print_line, print_success
from billfold.cli.context import CliContext, CliError
from billfold.client.responses import ApiError, read
from billfold.platform.clock import monotonic
from billfold.platform.dates import format_eastern
from billfold.sandbox.control.socket import SandboxTask, TaskStatus
from billfold.sandbox.credentials_file import require_sandbox_file
from billfold.sandbox.routes.control import SandboxForks
from billfold.sandbox.sandbox_client import cli_errors, partner_http

group = CommandGroup(
    "sandbox",
    "Run a whole bank on this machine: over https, with a partner and a customer to try. A running one is forked,"
    " rewound and played with by its commands.",
    example="--fresh --seed 7",
)
_PATH = "/api/v1/sandbox"
_POLL_SECONDS = 0.3
_NOT_NOW = (httpx.codes.SERVICE_UNAVAILABLE, httpx.codes.TOO_MANY_REQUESTS)
_TASK_SECONDS = 600.0
Name = Annotated[str, typer.Argument(help="The name of the fork.")]


@group.command("fork before-the-wire")
def fork(context: CliContext, name: Name) -> str:
    """Copy the whole bank under a name: database, files, cards, local chain and clock."""
    run_task(context, "/forks/", {"name": name})
    return f"The bank is kept as {name}. Return to it with `billfold sandbox rewind {name}`."


@group.table("forks", columns=("name", "bank time", "made", "MB>"), empty="There are no forks.")
def forks(context: CliContext) -> Iterable[Row]:
    """List the copies of the bank."""
    with _partner(context) as http:
        found = read(http.get(f"{_PATH}/forks/"), SandboxForks)
    return [
        (
            each.name,
            format_eastern(datetime.fromisoformat(each.now)),
            format_eastern(datetime.fromisoformat(each.created_at)),
            f"{each.size / 1e6:.1f}",
        )
        for each in found.items
    ]


@group.command("rewind before-the-wire")
def rewind(context: CliContext, name: Name) -> str:
    """Let the bank be what it was when the copy was made. What happened since is gone; the copy stays."""
    run_task(context, f"/forks/{name}/rewind/")
    return f"The bank is as it was in {name}."


@group.command("drop before-the-wire")
def drop(context: CliContext, name: Name) -> str:
    """Remove a copy of the bank."""
    with _partner(context) as http:
        response = http.delete(f"{_PATH}/forks/{name}/")
        if response.is_error:
            raise ApiError(response)
    return f"The fork {name} is gone."


@group.command("reset")
def reset(context: CliContext) -> str:
    """Let the bank be what it was after its opening story, or after its first start without one."""
    run_task(context, "/reset/")
    return "The bank is as it was in the beginning."


@contextmanager
def _partner(context: CliContext) -> Iterator[httpx.Client]:
    """Lend the Partner API of the running sandbox. What fails inside is raised as CliError."""
    with cli_errors(), partner_http(require_sandbox_file(context.settings().state_dir)) as http:
        yield http


def run_task(context: CliContext, path: str, body: dict[str, Any] | None = None) -> None:
    """Start a task, print its steps as they come, and wait for its end. Raises CliError when it fails."""
    with _partner(context) as http, console.status("") as status:
        content = None if body is None else msgspec.json.encode(body)
        headers = {} if body is None else {"content-type": "application/json"}
        task = read(http.post(f"{_PATH}{path}", content=content, headers=headers), SandboxTask)
        steps = _StepPrinter(status.update)
        until = monotonic() + _TASK_SECONDS
        while not steps.show(task) and monotonic() < until:
            time.sleep(_POLL_SECONDS)
            response = http.get(f"{_PATH}/tasks/{task.id}/")
            if response.status_code not in _NOT_NOW:
                task = read(response, SandboxTask)
    if task.status != TaskStatus.COMPLETED:
        raise CliError(f"{task.detail or 'It did not end in time.'}", "See `billfold doctor`.")


class _StepPrinter:
    """Prints each step of a task once it has ended."""

    def __init__(self, update: Callable[[str], None]) -> None:
        self._update = update
        self._printed = 0

    def show(self, task: SandboxTask) -> bool:
        """Print what is new; return whether the task has ended."""
        for step in task.steps[self._printed :]:
            if step.status == TaskStatus.RUNNING:
                self._update(step.title)
                break
            self._printed += 1
            if step.status == TaskStatus.COMPLETED:
                print_success(escape(f"{step.title}: {step.detail}" if step.detail else step.title))
            else:
                print_line(f"[red]✗[/] {escape(step.title)}")
        return task.status != TaskStatus.RUNNING
