"""`billfold clock`: the test clock, moved from the command line."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from billfold.cli.command import CommandGroup, console, key_value_table
from billfold.cli.context import CliError
from billfold.cli.process_supervisor import stop_on_signals
from billfold.ledger.bank import Bank
from billfold.platform.dates import ET, format_eastern, require_in_range
from billfold.sandbox.control.clock_stepper import ClockStatus, ClockStepper, EventKind

group = CommandGroup(
    "clock",
    "Show the bank's clock; in a sandbox, move it: due work on the way is done. Ctrl-C stops it on its way.",
    example="advance --business-days 1",
)
_DAYS_MAX = 36_600
"""A hundred years: further than any clock goes."""


@group.view("show")
async def show(bank: Bank) -> None:
    """Show the bank's time, its business date and when the next work is due."""
    print_clock(await ClockStepper(bank).show())


@group.command("set 2025-06-24T09:00")
async def set_clock(
    bank: Bank, to: Annotated[str, typer.Argument(help="A timestamp; without an offset in New York time.")]
) -> None:
    """Move the clock forward to an instant."""
    at = _instant(to)
    print_clock(await _walk(bank, lambda stepper: stepper.set_to(at)))


@group.command("advance --business-days 3", "advance --hours 2")
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
        print_clock(await _walk(bank, lambda stepper: stepper.advance_business_days(business_days)))
    else:
        print_clock(await _walk(bank, lambda stepper: stepper.advance(by)))


@group.command("next", "next maturity")
async def next_event(
    bank: Bank, kind: Annotated[EventKind | None, typer.Argument(help="The kind of event; any without it.")] = None
) -> None:
    """Move the clock to the next instant at which work is due, or to the next event of a kind."""
    print_clock(await _walk(bank, lambda stepper: stepper.advance_to_next_event(kind)))


@group.command("freeze")
async def freeze(bank: Bank) -> None:
    """Stop the clock, also one that is on its way."""
    print_clock(await ClockStepper(bank).freeze())


@group.command("resume")
async def resume(bank: Bank) -> None:
    """Let the clock run, a second per second."""
    print_clock(await ClockStepper(bank).resume())


def print_clock(clock_face: ClockStatus) -> None:
    """Print the clock, and what was done on the way."""
    runs = "frozen" if clock_face.frozen else "running"
    rows: list[tuple[str, object]] = [
        ("Clock", f"{format_eastern(clock_face.now)} ({runs if clock_face.settable else 'real time'})"),
        ("Business date", clock_face.business_date),
        ("Next event", format_eastern(clock_face.next_event_at) if clock_face.next_event_at else "nothing is due"),
    ]
    rows += [(f"Done: {kind}", count) for kind, count in clock_face.happened.items()]
    console.print(key_value_table(rows))


async def _walk(bank: Bank, move: Callable[[ClockStepper], Awaitable[ClockStatus]]) -> ClockStatus:
    """Move the clock, showing how far it is; a signal ends the walk at the instant that it has reached."""
    stop = stop_on_signals()
    with console.status("") as progress:

        def show(reached: datetime) -> bool:
            progress.update(f"It is {format_eastern(reached)} in the bank.")
            return not stop.is_set()

        return await move(ClockStepper(bank, show))


def _instant(text: str) -> datetime:
    """Return the instant that a text names. Raises CliError, also for a time that New York skips or has twice."""
    try:
        at = require_in_range(datetime.fromisoformat(text))
        first, second = (at if at.tzinfo else at.replace(tzinfo=ET, fold=fold) for fold in (0, 1))
        if first.utcoffset() == second.utcoffset():
            return first.astimezone(UTC)
    except ValueError:
        raise CliError(f"{text!r} is not a timestamp.", "Write it like 2025-06-24T09:00 or with an offset.") from None
    raise CliError(f"{text} is not one instant in New York: the clocks change that day.", "Write it with an offset.")
