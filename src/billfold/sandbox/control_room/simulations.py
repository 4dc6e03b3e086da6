"""Simulations in the control room: all of them, and for each a form made from its parameters."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from litestar import get, post

from billfold.http.openapi.document import examples_of
from billfold.http.operations import Operation, operations_below
from billfold.http.responses import HttpResponse
from billfold.platform.errors import InvalidInput, NotFound, Refused
from billfold.sandbox.control_room.fields import Field, field_of, kind_of, schema_of
from billfold.sandbox.control_room.overview import PATH
from billfold.sandbox.control_room.room import ControlRoom, InRoom
from billfold.sandbox.simulations.catalogue import Parameter, Simulation, magic_values, simulations
from billfold.web.console.api_client import error_of
from billfold.web.page_context import PUBLIC, Mistake, PageResponse

_ONE = f"{PATH}/simulations/{{name:str}}"
_WHOLE = re.compile(r"-?\d{1,18}", re.ASCII)
_CLOCK = "clock"
"""The area that the first page has buttons for."""
_TITLES = {"ach": "ACH", "card-money": "Card payments", "payments": "Incoming payments"}
_FIRST_ERROR = 400


@get(f"{PATH}/simulations", opt=PUBLIC)
async def show_simulations(room: InRoom) -> PageResponse:
    """Show every simulation by area, with the values that its counterpart obeys."""
    areas: dict[str, list[Simulation]] = {}
    for each in simulations():
        if each.area != _CLOCK:
            areas.setdefault(each.area, []).append(each)
    return room.render("control_room_simulations", areas=areas, titles=_TITLES, values=magic_values())


@get(_ONE, opt=PUBLIC)
async def show_simulation(name: str, room: InRoom) -> PageResponse:
    """Show the form of a simulation; what can be known is filled in."""
    return await _show(room, _simulation(name))


@post(_ONE, opt=PUBLIC)
async def run_simulation(name: str, room: InRoom) -> PageResponse:
    """Let something happen, and show what the operation answered."""
    simulation = _simulation(name)
    try:
        answer = await _run(room, simulation, _sent(simulation.parameters, room.page.form))
    except NotFound as missing:
        return await _show(room, simulation, wrong=missing.detail)
    except (InvalidInput, Refused) as wrong:
        return await _show(room, simulation, wrong=wrong)
    return await _show(room, simulation, answer=answer)


async def _run(room: ControlRoom, simulation: Simulation, sent: dict[str, Any]) -> str:
    """Return what a simulation answers. Raises what it answers when it is refused."""
    operation = _operation(simulation.name)
    in_path = {name: sent.pop(name, "") for name in operation.path_names}
    body = sent if operation.body is not None and (sent or not operation.is_body_optional) else None
    response = await room.api.answer(operation, in_path, body=body, key=room.page.form_key)
    assert isinstance(response, HttpResponse)
    if response.status >= _FIRST_ERROR:
        raise error_of(response)
    return _pretty(response.body)


async def _show(
    room: ControlRoom, simulation: Simulation, *, wrong: Mistake = "", answer: str | None = None
) -> PageResponse:
    example = examples_of("billfold.apis.partner_api").get(simulation.name, {}).get("request", {})
    fields = [
        await field_of(room, each, value=example.get(each.name), area=simulation.area) for each in simulation.parameters
    ]
    return room.render(
        "control_room_simulation",
        wrong=wrong,
        simulation=simulation,
        fields=fields,
        values=[each for each in magic_values() if each.area == simulation.area],
        outcome=answer,
        host=room.host,
        sample=_sample(simulation, fields),
    )


def _sent(parameters: Sequence[Parameter], form: Mapping[str, str]) -> dict[str, Any]:
    """Return what the fields of a form stand for, without those that are left out. Raises InvalidInput."""
    values = {each.name: _value(each, form.get(each.name, "")) for each in parameters}
    return {name: value for name, value in values.items() if value is not None}


def _sample(simulation: Simulation, fields: Sequence[Field]) -> str:
    """Return the body that the form stands for, as far as it is right."""
    in_body = [each for each in simulation.parameters if each.place == "body"]
    try:
        body = _sent(in_body, {each.name: each.value for each in fields})
    except InvalidInput:
        return ""
    return msgspec.json.encode(body).decode() if body else ""


def _value(parameter: Parameter, text: str) -> Any:  # noqa: ANN401 - any JSON
    """Return what a field of the form stands for; None is left out. Raises InvalidInput."""
    schema = schema_of(parameter)
    kind = kind_of(schema)
    if not text.strip():
        return None
    if schema.get("type") == "boolean":
        return {"true": True, "false": False}.get(text, text)
    if kind == "integer" and _WHOLE.fullmatch(text.strip()):
        return int(text)
    if kind == "object":
        try:
            msgspec.json.decode(text)
        except (msgspec.DecodeError, RecursionError):
            raise InvalidInput.at("body", parameter.name, msg="is not JSON") from None
        return msgspec.Raw(text.encode())
    return text


def _pretty(content: bytes) -> str:
    return msgspec.json.format(content).decode() if content else ""


def _simulation(name: str) -> Simulation:
    found = next((each for each in simulations() if each.name == name and each.area != _CLOCK), None)
    if found is None:
        raise NotFound("There is no such simulation.")
    return found


def _operation(name: str) -> Operation:
    return next(each for each in operations_below("billfold.sandbox") if each.name == name)
