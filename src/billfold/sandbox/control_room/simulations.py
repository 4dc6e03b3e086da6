"""Simulations in the control room: all of them, and for each a form made from its parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID

import msgspec
from litestar import get, post

from billfold.accounts.counterparties.routes import list_counterparties
from billfold.accounts.customers.routes import list_customers
from billfold.accounts.pockets.routes import list_pockets
from billfold.accounts.portals.routes import list_customer_portals
from billfold.http.openapi import examples_of
from billfold.http.operations import Operation, operations_below
from billfold.onboarding.applications.routes import list_business_applications
from billfold.payments.ach.routes import list_customer_ach_originations
from billfold.payments.cards.routes import list_customer_card_orders, list_customer_cards
from billfold.payments.wires.routes import list_wires
from billfold.platform.errors import InvalidInput, NotFound, Refused
from billfold.sandbox.control_room.overview import WHOLE
from billfold.sandbox.control_room.room import PATH, ControlRoom, InRoom
from billfold.sandbox.routes.catalogue import SandboxSimulation, SimulationParameter, magic_values, simulations
from billfold.web.console.api import ApiClient
from billfold.web.forms import cents_of
from billfold.web.page_context import PUBLIC, FormError, PageResponse

_ONE = f"{PATH}/simulations/{{name:str}}"
_CLOCK = "clock"
"""The area whose simulations are buttons on the first page."""
_CENTS = "_usdc"
_TITLES = {"ach": "ACH", "card-money": "Card payments", "payments": "Incoming payments"}


@get(f"{PATH}/simulations", opt=PUBLIC)
async def show_simulations(room: InRoom) -> PageResponse:
    """Show every simulation by area, with the magic values of its counterpart."""
    areas: dict[str, list[SandboxSimulation]] = {}
    for each in simulations():
        if each.area != _CLOCK:
            areas.setdefault(each.area, []).append(each)
    return room.render("control_room_simulations", areas=areas, titles=_TITLES, values=magic_values())


@get(_ONE, opt=PUBLIC)
async def show_simulation(name: str, room: InRoom) -> PageResponse:
    """Show the form of a simulation, prefilled where possible."""
    return await _show(room, _simulation(name))


@post(_ONE, opt=PUBLIC)
async def run_simulation(name: str, room: InRoom) -> PageResponse:
    """Run a simulation, and show the response."""
    simulation = _simulation(name)
    try:
        answer = await _run_simulation(room, simulation, _form_values(simulation.parameters, room.page.form))
    except NotFound as missing:
        return await _show(room, simulation, wrong=missing.detail)
    except (InvalidInput, Refused) as wrong:
        return await _show(room, simulation, wrong=wrong)
    return await _show(room, simulation, answer=answer)


async def _run_simulation(room: ControlRoom, simulation: SandboxSimulation, sent: dict[str, Any]) -> str:
    """Return the response of a simulation. Raises its problem if it is refused."""
    operation = _operation(simulation.name)
    in_path = {name: sent.pop(name, "") for name in operation.path_names}
    body = sent if operation.body is not None and (sent or not operation.is_body_optional) else None
    answer = await room.api.send(operation, body, key=room.page.form_key, **in_path)
    return "" if answer is None else _pretty(msgspec.json.encode(answer))


async def _show(
    room: ControlRoom, simulation: SandboxSimulation, *, wrong: FormError = "", answer: str | None = None
) -> PageResponse:
    example = examples_of("billfold.apis.partner_api").get(simulation.name, {}).get("request", {})
    fields = [
        await field_of(
            room,
            each.name,
            each.schema,
            is_required=each.required,
            value=_shown(each.name, example.get(each.name)),
            area=simulation.area,
        )
        for each in simulation.parameters
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


def _form_values(parameters: Sequence[SimulationParameter], form: Mapping[str, str]) -> dict[str, Any]:
    """Return the values of a form's fields, without omitted ones. Raises InvalidInput."""
    values = {each.name: _value(each, form.get(each.name, "")) for each in parameters}
    return {name: value for name, value in values.items() if value is not None}


def _sample(simulation: SandboxSimulation, fields: Sequence[Field]) -> str:
    """Return the body of the form, as far as it is valid."""
    in_body = [each for each in simulation.parameters if each.place == "body"]
    try:
        body = _form_values(in_body, {each.name: each.value for each in fields})
    except InvalidInput:
        return ""
    return msgspec.json.encode(body).decode() if body else ""


def _value(parameter: SimulationParameter, text: str) -> Any:  # noqa: ANN401 - any JSON
    """Return the value of a form field; None if omitted. Raises InvalidInput."""
    schema = _present(parameter.schema)
    kind = _kind_of(schema)
    if not text.strip():
        return None
    if schema.get("type") == "boolean":
        return {"true": True, "false": False}.get(text, text)
    is_dollars = parameter.name.endswith(_CENTS)
    if is_dollars or (kind == "integer" and WHOLE.fullmatch(text.strip())):
        return cents_of(parameter.name, text.strip()) if is_dollars else int(text)
    if kind == "object":
        try:
            return msgspec.json.decode(text)
        except (msgspec.DecodeError, RecursionError):
            raise InvalidInput.at("body", parameter.name, msg="is not JSON") from None
    return text


def _shown(name: str, value: object) -> object:
    """Return a value as its field shows it: cents as dollars."""
    return f"{value / 100:,.2f}" if name.endswith(_CENTS) and isinstance(value, int) else value


def _pretty(content: bytes) -> str:
    return msgspec.json.format(content).decode() if content else ""


def _simulation(name: str) -> SandboxSimulation:
    found = next((each for each in simulations() if each.name == name and each.area != _CLOCK), None)
    if found is None:
        raise NotFound("There is no such simulation.")
    return found


def _operation(name: str) -> Operation:
    return next(each for each in operations_below("billfold.sandbox") if each.name == name)


_CHOSEN = "event_id"
"""An id that the client chooses."""


class Field(NamedTuple):
    """A parameter as a form field."""

    name: str
    kind: str
    is_required: bool
    value: str
    choices: list[str]
    known: list[tuple[str, str]]
    """Selectable ids, each with a label."""


async def field_of(
    room: ControlRoom,
    name: str,
    schema: dict[str, Any],
    *,
    is_required: bool,
    value: object,
    area: str = "",
    customer_id: UUID | None = None,
) -> Field:
    """Return the field of a parameter, prefilled with the former input, the value in the address, or a default.

    Ids are those of one customer, or of all; those that match an area come first.
    """
    present, known = _present(schema), []
    if value is None:
        value = schema.get("default")
    if present.get("format") == "uuid" and name != _CHOSEN:  # ids in examples belong to another bank
        known = await list_known(room.api, name, customer_id) if name in IDS else []
        known.sort(key=lambda each: area.upper() not in each[1])
        value = known[0][0] if known and (value is not None or is_required) else None
    return Field(
        name=name,
        kind=_kind_of(present),
        is_required=is_required,
        value=room.page.form.get(name, room.page.query.get(name, _text(value))),
        choices=present.get("enum", ["true", "false"]),
        known=known,
    )


def _present(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a value other than null."""
    found: dict[str, Any] = next(each for each in schema.get("anyOf", [schema]) if each.get("type") != "null")
    return found


def _kind_of(schema: dict[str, Any]) -> str:
    """Return the JSON type of a value; `choice` if the values are given."""
    if "enum" in schema or schema.get("type") == "boolean":
        return "choice"
    return str(schema.get("type", "string"))


def _text(value: object) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else msgspec.json.format(msgspec.json.encode(value)).decode()


_CUSTOMERS = 5
_SHOWN = 20
_SAYS = ("name", "pocket_name", "counterparty_name", "direction", "type", "last_four", "status")


IDS: Mapping[str, tuple[Operation, str]] = {
    "account_id": (list_pockets, "id"),
    "application_id": (list_business_applications, "id"),
    "card_id": (list_customer_cards, "card_id"),
    "card_order_id": (list_customer_card_orders, "card_order_id"),
    "counterparty_id": (list_counterparties, "id"),
    "customer_id": (list_customers, "id"),
    "pocket_id": (list_pockets, "id"),
    "portal_id": (list_customer_portals, "id"),
    "transfer_id": (list_customer_ach_originations, "id"),
    "wire_id": (list_wires, "id"),
}
"""The operations that list ids, and the field of the id."""
_OF_EACH_CUSTOMER = ("card_id", "card_order_id", "counterparty_id", "portal_id", "transfer_id")
"""Objects that are listed for one customer at a time."""


async def list_known(api: ApiClient, parameter: str, customer_id: UUID | None = None) -> list[tuple[str, str]]:
    """Return the possible ids of a parameter, each with a label: of one customer, or of all."""
    listed, id_field = IDS[parameter]
    if parameter not in _OF_EACH_CUSTOMER:
        items = (await api.get(listed, limit=_SHOWN)).items
        items = [each for each in items if customer_id in {None, getattr(each, "customer_id", each.id)}]
    else:
        customers = [each.id for each in (await api.get(list_customers, limit=_CUSTOMERS)).items]
        items = [
            item
            for each in (customers if customer_id is None else [customer_id])
            for item in (await api.get(listed, customer_id=each, limit=_SHOWN)).items
        ]
    return [(str(getattr(each, id_field)), _words(each)) for each in items[:_SHOWN]]


def _words(item: Any) -> str:  # noqa: ANN401 - an item of any list
    said = [getattr(item, name, None) for name in _SAYS]
    amount = getattr(getattr(item, "amount", None), "formatted", None)
    return ", ".join(str(each) for each in [*said, amount] if isinstance(each, str) and each)
