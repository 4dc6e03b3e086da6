"""`billfold clock`: the test clock, moved from the command line."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from billfold.cli.command import CommandGroup
from billfold.cli.context import CliError
from billfold.cli.output import console, format_eastern, key_value_table
from billfold.platform.dates import ET
from billfold.sandbox.clock.stepper import ClockStatus, ClockStepper

if TYPE_CHECKING:
    from billfold.ledger.bank import Bank

group = CommandGroup(
    "clock",
    "Show the bank's clock; in a sandbox, move it: due work on the way is done.",
    example="advance --business-days 1",
)


@group.command("show")
async def show(bank: Bank) -> None:
    """Show the bank's time, its business date and when the next work is due."""
    print_clock(await ClockStepper(bank).show())


@group.command("set 2025-06-24T09:00")
async def set_clock(
    bank: Bank, to: Annotated[str, typer.Argument(help="A timestamp; without an offset in New York time.")]
) -> None:
    """Move the clock forward to an instant."""
    print_clock(await ClockStepper(bank).set_to(_instant(to)))


@group.command("advance --business-days 3", "advance --hours 2")
async def advance(
    bank: Bank,
    business_days: Annotated[int, typer.Option(min=0, help="Settlement days.")] = 0,
    days: Annotated[int, typer.Option(min=0, help="Days of 24 hours.")] = 0,
    hours: Annotated[int, typer.Option(min=0)] = 0,
    seconds: Annotated[int, typer.Option(min=0)] = 0,
) -> None:
    """Move the clock forward by a duration."""
    by, stepper = timedelta(days=days, hours=hours, seconds=seconds), ClockStepper(bank)
    if bool(business_days) == bool(by):
        raise CliError(
            "The duration is ambiguous.", "Give --business-days, or one or more of --days, --hours and --seconds."
        )
    print_clock(await (stepper.advance_business_days(business_days) if business_days else stepper.advance(by)))


@group.command("next")
async def next_event(bank: Bank) -> None:
    """Move the clock to the next instant at which work is due."""
    print_clock(await ClockStepper(bank).advance_to_next_event())


@group.command("freeze")
async def freeze(bank: Bank) -> None:
    """Stop the clock."""
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


def _instant(text: str) -> datetime:
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise CliError(f"{text!r} is not a timestamp.", "Write it like 2025-06-24T09:00 or with an offset.") from None
    return at if at.tzinfo else at.replace(tzinfo=ET)
