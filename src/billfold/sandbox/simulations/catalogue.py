"""Makes the catalogue: each operation that simulates something, with its parameters and the events it has raised."""

import inspect
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Literal

import msgspec

from billfold.http.openapi.document import examples_of
from billfold.http.operations import Operation, operations_below
from billfold.sandbox import simulated_identity_check, simulated_linking, simulated_screening
from billfold.sandbox.ach import simulated_network
from billfold.sandbox.magic_values import MagicValue
from billfold.sandbox.wires import simulated_fedwire

_PACKAGE = "billfold.sandbox"
_EXAMPLES = "billfold.apis.partner_api"
_TASKS = frozenset({"control", "scenarios"})
"""Areas whose operations concern the sandbox as a whole."""
_OBEYED = (simulated_screening, simulated_network, simulated_fedwire, simulated_linking, simulated_identity_check)
Place = Literal["path", "query", "body"]


class Parameter(msgspec.Struct, frozen=True, kw_only=True):
    """A parameter of a simulation; `schema` is JSON Schema, with nothing to look up elsewhere."""

    name: str
    place: Place
    required: bool
    schema: dict[str, Any]


class Simulation(msgspec.Struct, frozen=True, kw_only=True):
    """Something that can be let happen. `events` are the kinds that it raised when its example was recorded."""

    name: str
    area: str
    summary: str
    description: str
    method: str
    path: str
    parameters: list[Parameter]
    problems: list[str]
    events: list[str]


@cache
def simulations() -> tuple[Simulation, ...]:
    """Return every simulation, by area and path."""
    examples = examples_of(_EXAMPLES)
    found = (
        _simulation(each, examples.get(each.name, {}))
        for each in operations_below(_PACKAGE)
        if each.method == "POST" and _area_of(each) not in _TASKS
    )
    return tuple(sorted(found, key=lambda each: (each.area, each.path)))


def magic_values() -> list[MagicValue]:
    """Return the values that the simulated counterparts obey."""
    return [each for module in _OBEYED for each in module.MAGIC_VALUES]


def _simulation(operation: Operation, example: Mapping[str, Any]) -> Simulation:
    summary, _, rest = (inspect.getdoc(operation.handler) or "").partition("\n\n")
    summary = " ".join(summary.split())
    return Simulation(
        name=operation.name,
        area=_area_of(operation),
        summary=summary,
        description=" ".join(rest.split()),
        method=operation.method,
        path=operation.path,
        parameters=list(_parameters(operation)),
        problems=list(operation.refuses),
        events=example.get("events", []),
    )


def _area_of(operation: Operation) -> str:
    *_, folder, name = operation.handler.__module__.split(".")
    return (folder if name == "routes" else name).replace("_", "-")


def _parameters(operation: Operation) -> Iterator[Parameter]:
    for name in operation.path_names:
        yield Parameter(name=name, place="path", required=True, schema=_schema(operation.hints[name]))
    if operation.body is not None:
        schema = _schema(operation.body)
        for name, each in schema["properties"].items():
            yield Parameter(name=name, place="body", required=name in schema.get("required", ()), schema=each)


def _schema(kind: Any) -> dict[str, Any]:  # noqa: ANN401 - any type
    """Return the JSON Schema of a type with what it refers to in its place."""
    (schema,), components = msgspec.json.schema_components([kind])
    inlined: dict[str, Any] = _inlined(schema, components)
    return inlined


def _inlined(part: Any, components: Mapping[str, Any]) -> Any:  # noqa: ANN401 - any JSON
    if isinstance(part, list):
        return [_inlined(each, components) for each in part]
    if not isinstance(part, dict):
        return part
    if "$ref" in part:
        return _inlined(components[part["$ref"].removeprefix("#/$defs/")], components)
    return {name: _inlined(each, components) for name, each in part.items()}
