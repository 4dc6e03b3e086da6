"""The bank's clock in the API: shown, advanced, stopped and started.

Advancing it returns when all due work on the way has been done. In the meantime the clock
shows the progress, and freezing it ends the walk.
"""

from datetime import date, datetime, timedelta
from typing import Annotated, Literal

import msgspec

from billfold.http.operations import TOKEN, get
from billfold.http.raw_request import instant_in_body
from billfold.identity.partners.caller import Caller
from billfold.ledger.bank import Bank
from billfold.platform.dates import iso_z
from billfold.platform.errors import FieldError, InvalidInput
from billfold.sandbox.control.clock_stepper import ClockStatus, ClockStepper, EventKind
from billfold.sandbox.routes.operations import require_first_partner, sandbox_post

ADVANCE_MAX_SECONDS = 10 * 366 * 86_400
ADVANCE_MAX_DAYS = 2_600
_MOVES = ("clock-would-go-back", "clock-too-far", "clock-stopped")
_OWN = ("sandbox-of-another-partner",)
_FIELDS = ("seconds", "business_days", "until")


class AdvanceRequest(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The distance: exactly one of seconds, business days (same time of day) or an instant."""

    seconds: Annotated[int, msgspec.Meta(ge=0, le=ADVANCE_MAX_SECONDS)] | None = None
    business_days: Annotated[int, msgspec.Meta(ge=1, le=ADVANCE_MAX_DAYS)] | None = None
    until: datetime | None = None


class SetRequest(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The instant to set the clock to, with its offset."""

    now: datetime


class NextEventRequest(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The kind of event to move to; without one, whatever is due first."""

    kind: EventKind | None = None


class Clock(msgspec.Struct, kw_only=True):
    """The time of the clock, and the work done on the way there, counted by kind."""

    now: str
    frozen: bool
    business_date: date
    next_event_at: str | None
    happened: dict[str, int]
    object_type: Literal["Clock"] = "Clock"


def render_clock(clock_state: ClockStatus) -> Clock:
    """Return the clock as the API returns it."""
    return Clock(
        now=iso_z(clock_state.now),
        frozen=clock_state.frozen,
        business_date=clock_state.business_date,
        next_event_at=None if clock_state.next_event_at is None else iso_z(clock_state.next_event_at),
        happened=clock_state.happened,
    )


@get("/api/v1/sandbox/clock/", TOKEN, name="sandbox_clock", tag="sandbox")
async def show(stepping: ClockStepper) -> Clock:
    """Show the bank's time, its business date and the next instant at which work is due."""
    return render_clock(await stepping.show())


@sandbox_post("clock/advance/", name="sandbox_clock_advance", status=200, refuses=(*_OWN, *_MOVES))
async def advance(caller: Caller, bank: Bank, stepping: ClockStepper, data: AdvanceRequest) -> Clock:
    """Move the clock forward; maturities, fees and day ends on the way happen in order."""
    await require_first_partner(bank, caller)
    if sum(getattr(data, field_name) is not None for field_name in _FIELDS) != 1:
        raise InvalidInput([FieldError(("body",), f"needs exactly one of {', '.join(_FIELDS)}", "value_error")])
    if data.seconds is not None:
        clock_state = await stepping.advance(timedelta(seconds=data.seconds))
    elif data.business_days is not None:
        clock_state = await stepping.advance_business_days(data.business_days)
    else:
        assert data.until is not None
        clock_state = await stepping.set_to(instant_in_body("until", data.until))
    return render_clock(clock_state)


@sandbox_post("clock/set/", name="sandbox_clock_set", status=200, refuses=(*_OWN, *_MOVES))
async def set_clock(caller: Caller, bank: Bank, stepping: ClockStepper, data: SetRequest) -> Clock:
    """Set the clock to a later instant."""
    await require_first_partner(bank, caller)
    return render_clock(await stepping.set_to(instant_in_body("now", data.now)))


@sandbox_post(
    "clock/run-to-next-event/",
    name="sandbox_clock_run_to_next_event",
    status=200,
    refuses=(*_OWN, *_MOVES, "nothing-ahead"),
)
async def advance_to_next_event(
    caller: Caller, bank: Bank, stepping: ClockStepper, data: NextEventRequest | None
) -> Clock:
    """Move the clock to the next instant at which any work in the bank is due.

    With a `kind`, to the next event of that kind; everything due before it happens first.
    """
    await require_first_partner(bank, caller)
    return render_clock(await stepping.advance_to_next_event(data.kind if data else None))


@sandbox_post("clock/freeze/", name="sandbox_clock_freeze", status=200, refuses=_OWN)
async def freeze(caller: Caller, bank: Bank, stepping: ClockStepper) -> Clock:
    """Stop the clock at its current time; a walk in progress ends there."""
    await require_first_partner(bank, caller)
    return render_clock(await stepping.freeze())


@sandbox_post("clock/resume/", name="sandbox_clock_resume", status=200, refuses=_OWN)
async def resume(caller: Caller, bank: Bank, stepping: ClockStepper) -> Clock:
    """Let the clock run, one second per second."""
    await require_first_partner(bank, caller)
    return render_clock(await stepping.resume())
