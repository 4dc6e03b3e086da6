"""The first page of the control room: the clock, the forks, what was done last."""

import re

from litestar import get

from billfold.platform.dates import ET
from billfold.platform.errors import Unavailable
from billfold.sandbox.clock import routes as clock
from billfold.sandbox.clock.events import EventKind
from billfold.sandbox.control import routes as control
from billfold.sandbox.control_room.people import sign_ins
from billfold.sandbox.control_room.room import ControlRoom, InRoom
from billfold.sandbox.forks.types import NAME_PATTERN, OPENING
from billfold.web.page_context import PUBLIC, Mistake, PageResponse

PATH = "/sandbox"
_HAPPENED = re.compile(r"([a-z._ -]{1,30})\.(\d{1,9})", re.ASCII)
_TASKS_SHOWN = 5
_NEXT = {
    "": "Whatever is due first",
    EventKind.MATURITY: "Maturity of a bill",
    EventKind.SETTLEMENT: "Settlement",
    EventKind.FEE: "Monthly fee",
    EventKind.DAY_END: "End of the day",
    EventKind.WIRE: "Wires",
    EventKind.ACH: "ACH",
}


@get(PATH, opt=PUBLIC)
async def show_first_page(room: InRoom) -> PageResponse:
    """Show the clock, the forks and the newest tasks."""
    return await show_overview(room)


async def show_overview(room: ControlRoom, *, wrong: Mistake = "") -> PageResponse:
    """Return the page; with a mistake in one of its forms, what was sent stays."""
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
        people=sign_ins(room.state_dir),
        given=room.page.form,
    )
