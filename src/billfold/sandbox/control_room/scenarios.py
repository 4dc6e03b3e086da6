"""Scenarios in the control room: what they tell, and a button that plays one."""

from litestar import get, post

from billfold.sandbox.control_room.forks import watch
from billfold.sandbox.control_room.overview import PATH
from billfold.sandbox.control_room.room import InRoom
from billfold.sandbox.scenarios import routes
from billfold.web.page_context import PUBLIC, PageResponse


@get(f"{PATH}/scenarios", opt=PUBLIC)
async def show_scenarios(room: InRoom) -> PageResponse:
    """Show every scenario with its steps."""
    listed = await room.api.get(routes.list_scenarios)
    return room.render("control_room_scenarios", scenarios=listed.items)


@post(f"{PATH}/scenarios/{{name:str}}/play", opt=PUBLIC)
async def play_scenario(name: str, room: InRoom) -> PageResponse:
    """Begin to play a scenario."""
    return await watch(room, room.api.send(routes.play_scenario, key=room.page.form_key, name=name))
