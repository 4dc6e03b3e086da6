"""`billfold clock`: the test clock, moved from the command line."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Annotated

import typer

from billfold.cli.context import CannotGoOn, Ground, ground_of
from billfold.cli.output import console, eastern, example, pairs
from billfold.cli.resources import with_bank
from billfold.platform.dates import ET
from billfold.sandbox.clock.stepper import ClockFace, Stepping

app = typer.Typer(
    no_args_is_help=True,
    help="Show the bank's clock, and in a sandbox move it: what was due on the way is done.",
    epilog=example("billfold clock advance --business-days 1"),
)

Move = Callable[[Stepping], Awaitable[ClockFace]]


@app.command(epilog=example("billfold clock show"))
def show(ctx: typer.Context) -> None:
    """Show the bank's time, its business date and when anything is due next."""
    _move(ground_of(ctx), Stepping.show)


@app.command("set", epilog=example("billfold clock set 2025-06-24T09:00"))
def set_clock(
    ctx: typer.Context,
    to: Annotated[str, typer.Argument(help="An instant; without an offset it is New York's.")],
) -> None:
    """Move the clock to an instant that has not been yet."""
    at = _instant(to)
    _move(ground_of(ctx), lambda stepping: stepping.set_to(at))


@app.command(
    epilog=example("billfold clock advance --business-days 3", "billfold clock advance --hours 2")
)
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
        raise CannotGoOn(
            "It is not clear how far to go.",
            "Give --business-days, or one or more of --days, --hours and --seconds.",
        )
    if business_days:
        _move(ground_of(ctx), lambda stepping: stepping.advance_business_days(business_days))
    else:
        _move(ground_of(ctx), lambda stepping: stepping.advance(by))


@app.command("next", epilog=example("billfold clock next"))
def next_event(ctx: typer.Context) -> None:
    """Move the clock to the next instant at which anything is due."""
    _move(ground_of(ctx), Stepping.run_to_next_event)


@app.command(epilog=example("billfold clock freeze"))
def freeze(ctx: typer.Context) -> None:
    """Let the clock stand still."""
    _move(ground_of(ctx), Stepping.freeze)


@app.command(epilog=example("billfold clock resume"))
def resume(ctx: typer.Context) -> None:
    """Let the clock run on, a second per second."""
    _move(ground_of(ctx), Stepping.resume)


def _move(ground: Ground, move: Move) -> None:
    show_face(with_bank(ground, lambda bank: move(Stepping(bank))))


def show_face(face: ClockFace) -> None:
    """Print what the clock shows."""
    runs = "frozen" if face.frozen else "running"
    rows: list[tuple[str, object]] = [
        ("Clock", f"{eastern(face.now)} ({runs if face.settable else 'real time'})"),
        ("Business date", face.business_date),
        ("Next event", eastern(face.next_event_at) if face.next_event_at else "nothing is due"),
    ]
    rows += [(f"Done: {kind}", count) for kind, count in face.happened.items()]
    console.print(pairs(rows))


def _instant(text: str) -> datetime:
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise CannotGoOn(
            f"{text!r} is not an instant.", "Write it like 2025-06-24T09:00 or with an offset."
        ) from None
    return at if at.tzinfo else at.replace(tzinfo=ET)
