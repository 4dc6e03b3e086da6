"""`billfold clock`: the test clock, moved from the command line."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Annotated

import typer

from billfold.cli.context import CliContext, CliError, cli_context
from billfold.cli.output import console, example, format_eastern, key_value_table
from billfold.cli.resources import run_with_bank
from billfold.platform.dates import ET
from billfold.sandbox.clock.stepper import ClockStatus, ClockStepper

app = typer.Typer(
    no_args_is_help=True,
    help="Show the bank's clock, and in a sandbox move it: what was due on the way is done.",
    epilog=example("billfold clock advance --business-days 1"),
)

ClockOperation = Callable[[ClockStepper], Awaitable[ClockStatus]]


@app.command(epilog=example("billfold clock show"))
def show(ctx: typer.Context) -> None:
    """Show the bank's time, its business date and when anything is due next."""
    _run(cli_context(ctx), ClockStepper.show)


@app.command("set", epilog=example("billfold clock set 2025-06-24T09:00"))
def set_clock(
    ctx: typer.Context, to: Annotated[str, typer.Argument(help="An instant; without an offset it is New York's.")]
) -> None:
    """Move the clock to an instant that has not been yet."""
    at = _instant(to)
    _run(cli_context(ctx), lambda stepping: stepping.set_to(at))


@app.command(epilog=example("billfold clock advance --business-days 3", "billfold clock advance --hours 2"))
def advance(
    ctx: typer.Context,
    business_days: Annotated[int, typer.Option(min=0, help="Settlement days.")] = 0,
    days: Annotated[int, typer.Option(min=0, help="Days of 24 hours.")] = 0,
    hours: Annotated[int, typer.Option(min=0)] = 0,
    seconds: Annotated[int, typer.Option(min=0)] = 0,
) -> None:
    """Move the clock forward."""
    by = timedelta(days=days, hours=hours, seconds=seconds)
    if bool(business_days) == bool(by):
        raise CliError(
            "It is not clear how far to go.", "Give --business-days, or one or more of --days, --hours and --seconds."
        )
    if business_days:
        _run(cli_context(ctx), lambda stepping: stepping.advance_business_days(business_days))
    else:
        _run(cli_context(ctx), lambda stepping: stepping.advance(by))


@app.command("next", epilog=example("billfold clock next"))
def next_event(ctx: typer.Context) -> None:
    """Move the clock to the next instant at which anything is due."""
    _run(cli_context(ctx), ClockStepper.advance_to_next_event)


@app.command(epilog=example("billfold clock freeze"))
def freeze(ctx: typer.Context) -> None:
    """Let the clock stand still."""
    _run(cli_context(ctx), ClockStepper.freeze)


@app.command(epilog=example("billfold clock resume"))
def resume(ctx: typer.Context) -> None:
    """Let the clock run on, a second per second."""
    _run(cli_context(ctx), ClockStepper.resume)


def _run(ground: CliContext, operation: ClockOperation) -> None:
    print_clock(run_with_bank(ground, lambda bank: operation(ClockStepper(bank))))


def print_clock(clock_face: ClockStatus) -> None:
    """Print what the clock shows."""
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
        raise CliError(f"{text!r} is not an instant.", "Write it like 2025-06-24T09:00 or with an offset.") from None
    return at if at.tzinfo else at.replace(tzinfo=ET)
