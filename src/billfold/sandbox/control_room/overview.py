"""The pages of the control room except simulations: the clock, the forks, the tasks, the scenarios."""

import re
from collections.abc import Awaitable, Callable, Mapping
from datetime import date
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import pyotp
from litestar import get, post

from billfold.http.operations import Operation
from billfold.http.schemas import usd
from billfold.identity.users.store import find_user_by_email
from billfold.oauth.rules.authorization_params import SCOPES
from billfold.platform.dates import ET
from billfold.platform.errors import InvalidInput, NotFound, Refused, Unavailable
from billfold.sandbox.control.clock_stepper import EventKind
from billfold.sandbox.control_room.room import PATH, ControlRoom, InRoom
from billfold.sandbox.forks.copies import NAME_PATTERN, OPENING
from billfold.sandbox.routes import clock, control
from billfold.sandbox.running_sandbox import read_sandbox_file
from billfold.web.account.sign_in import sign_in_at_once
from billfold.web.console.charts import maturity_ladder
from billfold.web.forms import instant_in_zone
from billfold.web.page_context import PUBLIC, FormError, PageResponse, path_id, redirect

WHOLE: Final = re.compile(r"-?\d{1,18}", re.ASCII)
_HAPPENED: Final = re.compile(r"([a-z._ -]{1,30})\.(\d{1,9})", re.ASCII)
_TASKS_SHOWN: Final = 5
_NEXT: Final = {
    "": "Whatever is due first",
    EventKind.MATURITY: "Maturity of a bill",
    EventKind.SETTLEMENT: "Settlement",
    EventKind.FEE: "Monthly fee",
    EventKind.DAY_END: "End of the day",
    EventKind.WIRE: "Wires",
    EventKind.ACH: "ACH",
}
_MOVES: Final[Mapping[str, Operation]] = {
    "next": clock.advance_to_next_event,
    "advance": clock.advance,
    "set": clock.set_clock,
    "freeze": clock.freeze,
    "resume": clock.resume,
}
_STATES: Final = (
    ("SETTLED", "APPROVED", "ACTIVE", "COMPLETED"),
    ("PENDING", "BOOKED", "IN_PROGRESS", "RUNNING"),
    ("FAILED", "RETURNED", "FROZEN", "DENIED"),
    ("DRAFT", "CLOSED"),
)
_LADDER: Final = ((date(2025, 7, 1), 50_000_00), (date(2025, 7, 8), 125_000_00), (date(2025, 7, 15), 20_000_00))


@get(PATH, opt=PUBLIC)
async def show_first_page(room: InRoom) -> PageResponse:
    """Show the clock, the forks and the newest tasks."""
    return await _show_overview(room)


async def _show_overview(room: ControlRoom, *, wrong: FormError = "") -> PageResponse:
    """Return the page; with an error in one of its forms, the input is kept."""
    try:
        forks = (await room.api.get(control.list_forks)).items
        tasks = (await room.api.get(control.list_tasks)).items[:_TASKS_SHOWN]
        closed = ""
    except Unavailable as unavailable:
        forks, tasks, closed = [], [], unavailable.detail
    happened = room.page.query.get("happened")
    return room.render(
        "control_room",
        wrong=wrong,
        shown=await room.api.get(clock.show),
        wall=f"{room.clock.now.astimezone(ET):%Y-%m-%dT%H:%M}",
        kinds=_NEXT,
        happened=None if happened is None else _HAPPENED.findall(happened),
        forks=forks,
        tasks=tasks,
        closed=closed,
        opening=OPENING,
        name_pattern=NAME_PATTERN.strip("^").removesuffix(r"\Z"),
        people=_sign_ins(room.state_dir),
        given=room.page.form,
    )


def _sign_ins(state_dir: Path) -> list[SimpleNamespace]:
    """Return the people in the sandbox's file, each with the current code of their authenticator app."""
    saved = read_sandbox_file(state_dir)
    if saved is None:
        return []
    people = [("Administrator of a company", saved.person), ("Its manager, approves", saved.colleague)]
    people += [("Administrator of the partner", saved.partner_person)] if saved.partner_person else []
    people += zip(("Operator of the bank, administrator", "Second operator, manager"), saved.operators, strict=False)
    return [
        SimpleNamespace(
            role=role,
            name=each.email.partition("@")[0].capitalize(),
            email=each.email,
            password=each.password,
            code=pyotp.TOTP(each.totp_secret).now(),
        )
        for role, each in people
    ]


@post(f"{PATH}/sign-in", opt=PUBLIC)
async def sign_in_as(room: InRoom) -> PageResponse:
    """Sign in as a person of the sandbox's file: users of its machine can read their passwords there."""
    page = room.page
    email = next((each.email for each in _sign_ins(room.state_dir) if each.email == page.form.get("email")), "")
    user = await find_user_by_email(page.pool, page.vault, email) if email else None
    if user is None:
        raise NotFound("The sandbox has no such person.")
    return await sign_in_at_once(page, user, "otp", "/")


async def _start_task(
    room: ControlRoom,
    sent: Awaitable[Any],
    shown: Callable[[Any], PageResponse] = lambda task: redirect(f"{PATH}/tasks/{task.id}"),
) -> PageResponse:
    """Redirect to the new task, or show why it was not started."""
    try:
        begun = await sent
    except (InvalidInput, Refused, Unavailable) as wrong:
        return await _show_overview(room, wrong=wrong.detail if isinstance(wrong, Unavailable) else wrong)
    return shown(begun)


@post(f"{PATH}/clock/{{move:str}}", opt=PUBLIC)
async def move_clock(move: str, room: InRoom) -> PageResponse:
    """Move the clock as a button says; the next page shows the work done on the way."""

    def shown(moved: clock.Clock) -> PageResponse:
        happened = ",".join(f"{kind}.{count}" for kind, count in moved.happened.items())
        return redirect(f"{PATH}?happened={happened or 'nothing'}" if move in {"next", "advance", "set"} else PATH)

    return await _start_task(room, _move_clock(room, move), shown)


async def _move_clock(room: ControlRoom, move: str) -> clock.Clock:
    form = room.page.form
    body: dict[str, object] = {}
    if move not in _MOVES:
        raise NotFound("The clock has no such button.")
    if move == "next" and form.get("kind"):
        body = {"kind": form["kind"]}
    elif move == "advance":
        days = form.get("business_days", "")
        body = {"business_days": int(days) if WHOLE.fullmatch(days) else days}
    elif move == "set":
        body = {"now": instant_in_zone("now", form.get("now", ""), ET.key)}
    moved: clock.Clock = await room.api.send(_MOVES[move], body or None, key=room.page.form_key)
    return moved


@post(f"{PATH}/forks", opt=PUBLIC)
async def make_fork(room: InRoom) -> PageResponse:
    """Start a copy of the bank."""
    name = room.page.form.get("name", "")
    return await _start_task(room, room.api.send(control.fork, {"name": name}, key=room.page.form_key))


@post(f"{PATH}/forks/{{name:str}}/rewind", opt=PUBLIC)
async def rewind_to_fork(name: str, room: InRoom) -> PageResponse:
    """Start the return to a copy."""
    return await _start_task(room, room.api.send(control.rewind, key=room.page.form_key, name=name))


@post(f"{PATH}/forks/{{name:str}}/drop", opt=PUBLIC)
async def drop_fork(name: str, room: InRoom) -> PageResponse:
    """Remove a copy."""
    dropped = room.api.send(control.drop_fork, key=room.page.form_key, name=name)
    return await _start_task(room, dropped, lambda _: redirect(PATH, done="fork-dropped"))


@post(f"{PATH}/reset", opt=PUBLIC)
async def reset_bank(room: InRoom) -> PageResponse:
    """Start the return to the initial state."""
    return await _start_task(room, room.api.send(control.reset, key=room.page.form_key))


@get(f"{PATH}/tasks/{{task_id:str}}", opt=PUBLIC)
async def show_task(task_id: str, room: InRoom) -> PageResponse:
    """Show the progress of a task. Its page reloads until it has ended."""
    return room.render("control_room_task", task=await room.api.get(control.get_task, task_id=path_id(task_id)))


@get(f"{PATH}/scenarios", opt=PUBLIC)
async def show_scenarios(room: InRoom) -> PageResponse:
    """Show every scenario with its steps."""
    listed = await room.api.get(control.list_scenarios)
    return room.render("control_room_scenarios", scenarios=listed.items)


@post(f"{PATH}/scenarios/{{name:str}}/play", opt=PUBLIC)
async def play_scenario(name: str, room: InRoom) -> PageResponse:
    """Start a scenario."""
    return await _start_task(room, room.api.send(control.play_scenario, key=room.page.form_key, name=name))


@get(f"{PATH}/components", opt=PUBLIC)
async def show_components(room: InRoom) -> PageResponse:
    """Show every component of the pages once, in all its states, for page developers."""
    signed = (("CREDIT", 250_000_00), ("DEBIT", -1_500_00))
    return room.render(
        "control_room_components",
        states=_STATES,
        amounts=[usd(each) for each in (1_204_33, -87_10, 0)],
        per_second=Decimal("3.7"),
        ladder=maturity_ladder(_LADDER),
        marks={"amount": "The amount must be dollars like 1,250.50.", "text": "The text is too long."},
        pages=SimpleNamespace(prev_page="newer", next_page="older"),
        scopes=list(SCOPES)[:4],
        signed=[SimpleNamespace(direction=direction, amount=usd(amount)) for direction, amount in signed],
    )
