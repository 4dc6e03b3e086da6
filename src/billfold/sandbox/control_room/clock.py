"""The clock on the first page of the control room: moved, stopped, let run."""

import re

from litestar import post

from billfold.platform.dates import ET
from billfold.platform.errors import InvalidInput, NotFound, Refused, Unavailable
from billfold.sandbox.clock import routes
from billfold.sandbox.clock.routes import Clock
from billfold.sandbox.control_room.overview import PATH, show_overview
from billfold.sandbox.control_room.room import ControlRoom, InRoom
from billfold.web.console.form_values import instant_in_zone
from billfold.web.page_context import PUBLIC, PageResponse, redirect

_WHOLE = re.compile(r"-?\d{1,18}", re.ASCII)


@post(f"{PATH}/clock/{{move:str}}", opt=PUBLIC)
async def move_clock(move: str, room: InRoom) -> PageResponse:
    """Let the clock do what a button says; the next page says what happened on the way."""
    try:
        moved = await _move(room, move)
    except (InvalidInput, Refused, Unavailable) as wrong:
        return await show_overview(room, wrong=wrong if isinstance(wrong, InvalidInput | Refused) else wrong.detail)
    happened = ",".join(f"{kind}.{count}" for kind, count in moved.happened.items())
    return redirect(f"{PATH}?happened={happened or 'nothing'}" if move in {"next", "advance", "set"} else PATH)


async def _move(room: ControlRoom, move: str) -> Clock:
    form, key = room.page.form, room.page.form_key
    send = room.api.send
    match move:
        case "next":
            body = {"kind": form["kind"]} if form.get("kind") else None
            moved: Clock = await send(routes.advance_to_next_event, body, key=key)
        case "advance":
            days = form.get("business_days", "")
            wanted = {"business_days": int(days) if _WHOLE.fullmatch(days) else days}
            moved = await send(routes.advance, wanted, key=key)
        case "set":
            moved = await send(routes.set_clock, {"now": instant_in_zone("now", form.get("now", ""), ET.key)}, key=key)
        case "freeze":
            moved = await send(routes.freeze, key=key)
        case "resume":
            moved = await send(routes.resume, key=key)
        case _:
            raise NotFound("The clock has no such button.")
    return moved
