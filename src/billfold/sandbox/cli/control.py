"""`billfold sandbox fork`, `rewind`, `reset` and the like: tasks requested of a running sandbox."""

import time
from collections.abc import Awaitable, Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer
from rich.markup import escape

from billfold.cli.command import CommandGroup, Row, console, key_value_table, print_line, print_success
from billfold.cli.context import CliContext, CliError
from billfold.cli.process_supervisor import stop_on_signals
from billfold.ledger.bank import Bank
from billfold.platform.clock import monotonic
from billfold.platform.dates import ET, format_eastern, require_in_range
from billfold.sandbox.cli.running_apis import open_partner_api
from billfold.sandbox.control.clock_stepper import ClockStatus, ClockStepper, EventKind
from billfold.sandbox.control.socket import TaskStatus
from billfold.sandbox.running_sandbox import require_sandbox_file
from billfold_client.errors import ApiError
from billfold_client.partner import PartnerApi, SandboxTask

group = CommandGroup(
    "sandbox",
    "Run a whole bank on this machine: over https, with a partner and a customer to try. A running one is forked,"
    " rewound and played with by its commands.",
    example="--fresh --seed 7",
)
_POLL_SECONDS = 0.3
_TASK_SECONDS = 600.0
Name = Annotated[str, typer.Argument(help="The name of the fork.")]


@group.command("fork before-the-wire")
def fork(context: CliContext, name: Name) -> str:
    """Copy the whole bank under a name: database, files, cards, local chain and clock."""
    run_task(context, lambda api: api.sandbox_fork(name=name))
    return f"The bank is kept as {name}. Return to it with `billfold sandbox rewind {name}`."


@group.table("forks", columns=("name", "bank time", "made", "MB>"), empty="There are no forks.")
def forks(context: CliContext) -> Iterable[Row]:
    """List the copies of the bank."""
    with open_partner_api(require_sandbox_file(context.settings().state_dir)) as api:
        found = api.sandbox_forks()
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
    """Restore the bank to the state of the copy. Later changes are lost; the copy stays."""
    run_task(context, lambda api: api.sandbox_rewind(name))
    return f"The bank is restored to {name}."


@group.command("drop before-the-wire")
def drop(context: CliContext, name: Name) -> str:
    """Remove a copy of the bank."""
    with open_partner_api(require_sandbox_file(context.settings().state_dir)) as api:
        api.sandbox_drop_fork(name)
    return f"The fork {name} has been removed."


@group.command("reset")
def reset(context: CliContext) -> str:
    """Restore the bank to its state after the opening story, or after its first start without one."""
    run_task(context, lambda api: api.sandbox_reset())
    return "The bank is restored to its initial state."


def run_task(context: CliContext, begin: Callable[[PartnerApi], SandboxTask]) -> None:
    """Start a task, print its steps as they end, and wait for it. Raises CliError if it fails."""
    with open_partner_api(require_sandbox_file(context.settings().state_dir)) as api, console.status("") as status:
        task = begin(api)
        steps = _StepPrinter(status.update)
        until = monotonic() + _TASK_SECONDS
        while not steps.show(task) and monotonic() < until:
            time.sleep(_POLL_SECONDS)
            try:
                task = api.sandbox_task(task.id)
            except ApiError as error:
                if not error.retryable:
                    raise
    if task.status != TaskStatus.COMPLETED:
        raise CliError(f"{task.detail or 'It did not end in time.'}", "See `billfold doctor`.")


class _StepPrinter:
    """Prints each step of a task once it has ended."""

    def __init__(self, update: Callable[[str], None]) -> None:
        self._update = update
        self._printed = 0

    def show(self, task: SandboxTask) -> bool:
        """Print new steps; return whether the task has ended."""
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


clock_commands = CommandGroup(
    "clock",
    "Show the bank's clock; in a sandbox, move it: due work on the way is done. Ctrl-C stops the walk.",
    example="advance --business-days 1",
)
_DAYS_MAX = 36_600
"""A hundred years: further than the clock can be set."""


@clock_commands.view("show")
async def show(bank: Bank) -> None:
    """Show the bank's time, its business date and when the next work is due."""
    print_clock(await ClockStepper(bank).show())


@clock_commands.command("set 2025-06-24T09:00")
async def set_clock(
    bank: Bank, to: Annotated[str, typer.Argument(help="A timestamp; without an offset in New York time.")]
) -> None:
    """Move the clock forward to an instant."""
    at = _instant(to)
    print_clock(await _move_clock(bank, lambda stepper: stepper.set_to(at)))


@clock_commands.command("advance --business-days 3", "advance --hours 2")
async def advance(
    bank: Bank,
    business_days: Annotated[int, typer.Option(min=0, max=_DAYS_MAX, help="Settlement days.")] = 0,
    days: Annotated[int, typer.Option(min=0, max=_DAYS_MAX, help="Days of 24 hours.")] = 0,
    hours: Annotated[int, typer.Option(min=0, max=_DAYS_MAX * 24)] = 0,
    seconds: Annotated[int, typer.Option(min=0, max=_DAYS_MAX * 86_400)] = 0,
) -> None:
    """Move the clock forward by a duration."""
    by = timedelta(days=days, hours=hours, seconds=seconds)
    if bool(business_days) == bool(by):
        raise CliError(
            "The duration is ambiguous.", "Give --business-days, or one or more of --days, --hours and --seconds."
        )
    if business_days:
        print_clock(await _move_clock(bank, lambda stepper: stepper.advance_business_days(business_days)))
    else:
        print_clock(await _move_clock(bank, lambda stepper: stepper.advance(by)))


@clock_commands.command("next", "next maturity")
async def next_event(
    bank: Bank, kind: Annotated[EventKind | None, typer.Argument(help="The kind of event; any without it.")] = None
) -> None:
    """Move the clock to the next instant at which work is due, or to the next event of a kind."""
    print_clock(await _move_clock(bank, lambda stepper: stepper.advance_to_next_event(kind)))


@clock_commands.command("freeze")
async def freeze(bank: Bank) -> None:
    """Stop the clock, even while it is moving."""
    print_clock(await ClockStepper(bank).freeze())


@clock_commands.command("resume")
async def resume(bank: Bank) -> None:
    """Let the clock run, one second per second."""
    print_clock(await ClockStepper(bank).resume())


def print_clock(clock_face: ClockStatus) -> None:
    """Print the clock, and the work done on the way."""
    runs = "frozen" if clock_face.frozen else "running"
    rows: list[tuple[str, object]] = [
        ("Clock", f"{format_eastern(clock_face.now)} ({runs if clock_face.settable else 'real time'})"),
        ("Business date", clock_face.business_date),
        ("Next event", format_eastern(clock_face.next_event_at) if clock_face.next_event_at else "nothing is due"),
    ]
    rows += [(f"Done: {kind}", count) for kind, count in clock_face.happened.items()]
    console.print(key_value_table(rows))


async def _move_clock(bank: Bank, move: Callable[[ClockStepper], Awaitable[ClockStatus]]) -> ClockStatus:
    """Move the clock and show its progress; a signal ends the walk at the instant that it has reached."""
    stop = stop_on_signals()
    with console.status("") as progress:

        def show(reached: datetime) -> bool:
            progress.update(f"It is {format_eastern(reached)} in the bank.")
            return not stop.is_set()

        return await move(ClockStepper(bank, show))


def _instant(text: str) -> datetime:
    """Return the instant of a text. Raises CliError, also for a time that New York skips or has twice."""
    try:
        at = require_in_range(datetime.fromisoformat(text))
        first, second = (at if at.tzinfo else at.replace(tzinfo=ET, fold=fold) for fold in (0, 1))
        if first.utcoffset() == second.utcoffset():
            return first.astimezone(UTC)
    except ValueError:
        raise CliError(f"{text!r} is not a timestamp.", "Write it like 2025-06-24T09:00 or with an offset.") from None
    raise CliError(f"{text} is not one instant in New York: the clocks change that day.", "Write it with an offset.")
