"""Forks and tasks in the control room: a copy is made, returned to, removed; a task is watched until it ends."""

from collections.abc import Awaitable
from typing import Any

from litestar import get, post

from billfold.platform.errors import InvalidInput, Refused, Unavailable
from billfold.sandbox.control import routes
from billfold.sandbox.control_room.overview import PATH, show_overview
from billfold.sandbox.control_room.room import ControlRoom, InRoom
from billfold.web.page_context import PUBLIC, PageResponse, path_id, redirect

_FORK = f"{PATH}/forks/{{name:str}}"


@post(f"{PATH}/forks", opt=PUBLIC)
async def make_fork(room: InRoom) -> PageResponse:
    """Begin a copy of the bank."""
    form = room.page.form
    return await watch(room, room.api.send(routes.fork, {"name": form.get("name", "")}, key=room.page.form_key))


@post(f"{_FORK}/rewind", opt=PUBLIC)
async def rewind_to_fork(name: str, room: InRoom) -> PageResponse:
    """Begin the return to a copy."""
    return await watch(room, room.api.send(routes.rewind, key=room.page.form_key, name=name))


@post(f"{_FORK}/drop", opt=PUBLIC)
async def drop_fork(name: str, room: InRoom) -> PageResponse:
    """Remove a copy."""
    try:
        await room.api.send(routes.drop_fork, key=room.page.form_key, name=name)
    except (Refused, Unavailable) as wrong:
        return await show_overview(room, wrong=wrong if isinstance(wrong, Refused) else wrong.detail)
    return redirect(PATH, done="fork-dropped")


@post(f"{PATH}/reset", opt=PUBLIC)
async def reset_bank(room: InRoom) -> PageResponse:
    """Begin the return to the beginning."""
    return await watch(room, room.api.send(routes.reset, key=room.page.form_key))


@get(f"{PATH}/tasks/{{task_id:str}}", opt=PUBLIC)
async def show_task(task_id: str, room: InRoom) -> PageResponse:
    """Show how far a task is. Its page is read again until it has ended."""
    task = await room.api.get(routes.get_task, task_id=path_id(task_id))
    return room.render("control_room_task", task=task)


async def watch(room: ControlRoom, started: Awaitable[Any]) -> PageResponse:
    """Lead to a task, or say why it was not begun."""
    try:
        task = await started
    except (InvalidInput, Refused, Unavailable) as wrong:
        return await show_overview(room, wrong=wrong.detail if isinstance(wrong, Unavailable) else wrong)
    return redirect(f"{PATH}/tasks/{task.id}")
