"""Parameters of operations as fields of a form; ids that are known are offered."""

from typing import Any, NamedTuple
from uuid import UUID

import msgspec

from billfold.sandbox.control_room.known_ids import IDS, list_known
from billfold.sandbox.control_room.room import ControlRoom
from billfold.sandbox.simulations.catalogue import Parameter

_CHOSEN = "event_id"
"""An id that its sender chooses."""


class Field(NamedTuple):
    """A parameter as a form asks for it."""

    name: str
    kind: str
    is_required: bool
    value: str
    choices: list[str]
    known: list[tuple[str, str]]
    """Ids that may be meant, each with what it stands for."""


async def field_of(
    room: ControlRoom, parameter: Parameter, *, value: object, area: str = "", customer_id: UUID | None = None
) -> Field:
    """Return the field of a parameter, filled in with what was sent, what the address says, or a value.

    Ids are those of one customer, or of all; first is what suits an area.
    """
    schema, name, known = schema_of(parameter), parameter.name, []
    if value is None:
        value = parameter.schema.get("default")
    if schema.get("format") == "uuid" and name != _CHOSEN:  # those of examples are of another bank
        known = await list_known(room.api, name, customer_id) if name in IDS else []
        known.sort(key=lambda each: area.upper() not in each[1])
        value = known[0][0] if known and (value is not None or parameter.required) else None
    return Field(
        name=name,
        kind=kind_of(schema),
        is_required=parameter.required,
        value=room.page.form.get(name, room.page.query.get(name, _text(value))),
        choices=schema.get("enum", ["true", "false"]),
        known=known,
    )


def schema_of(parameter: Parameter) -> dict[str, Any]:
    """Return the schema of a value that is there."""
    either = parameter.schema.get("anyOf", [parameter.schema])
    found: dict[str, Any] = next(each for each in either if each.get("type") != "null")
    return found


def kind_of(schema: dict[str, Any]) -> str:
    """Return the type of a value in JSON; `choice` where the values are given."""
    if "enum" in schema or schema.get("type") == "boolean":
        return "choice"
    return str(schema.get("type", "string"))


def _text(value: object) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else msgspec.json.format(msgspec.json.encode(value)).decode()
