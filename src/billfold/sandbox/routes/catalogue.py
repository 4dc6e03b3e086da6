"""Builds the catalog: each operation that simulates something, with its parameters and the events it has raised."""

import inspect
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Literal

import msgspec

from billfold.http.openapi import examples_of
from billfold.http.operations import Operation, operations_below

_PACKAGE = "billfold.sandbox"
_EXAMPLES = "billfold.apis.partner_api"
_PATH = "/api/v1/sandbox/"
_AREAS = {
    "ach/": "ach",
    "application-decision/": "applications",
    "card-": "card-money",
    "clock/": "clock",
    "counterparty-verification/": "counterparties",
    "crypto/": "crypto",
    "custodian/": "custody",
    "customers/": "customers",
    "dealers/": "dealers",
    "faults/": "faults",
    "fund/": "payments",
    "generate-card/": "cards",
    "pockets/": "customers",
    "security-transfer/": "custody",
    "statements/": "reconciliation",
    "webhook/": "webhooks",
    "wire/": "payments",
    "wires/": "wires",
}
"""Path prefixes of simulations; other operations concern the sandbox as a whole."""


class SimulationParameter(msgspec.Struct, kw_only=True):
    """A parameter; `schema` is self-contained JSON Schema."""

    name: str
    place: Literal["path", "body"]
    required: bool
    schema: dict[str, Any]


class SandboxSimulation(msgspec.Struct, kw_only=True):
    """A simulation. `events` are the kinds that it raised when its example was recorded."""

    name: str
    area: str
    summary: str
    description: str
    method: str
    path: str
    parameters: list[SimulationParameter]
    problems: list[str]
    events: list[str]
    object_type: Literal["SandboxSimulation"] = "SandboxSimulation"


class SandboxMagicValue(msgspec.Struct):
    """A magic value of a simulated counterpart, and its effect."""

    area: str
    field: str
    value: str
    effect: str


class SandboxCatalogue(msgspec.Struct, kw_only=True):
    """All simulations of a sandbox."""

    items: list[SandboxSimulation]
    magic_values: list[SandboxMagicValue]


_MAGIC_VALUES = (
    ("wires", "amount", "ends in 02", "An outgoing wire is rejected: SANCTION_SCREEN_FAILED."),
    ("card-money", "amount", "ends in 04", "A card payment is declined."),
    ("counterparties", "name", "contains UNVERIFIABLE", "The name cannot be verified."),
    ("counterparties", "file name", "contains invalid", "An uploaded document is rejected."),
    ("counterparties", "micro-deposits", "11 and 22", "The deposits, in cents, to confirm."),
    ("ach", "routing number", "091000019", "An originated entry comes back: no account (R03)."),
    ("ach", "amount", "ends in 03", "An originated debit comes back for R01, a credit for R02."),
    ("wires", "amount", "ends in 01", "The receiving bank refuses the wire (AC04)."),
    ("counterparties", "public_token", "begins with public-sandbox-", "The link is exchanged."),
    ("counterparties", "accounts.id", "contains unknown", "The link has no such account."),
    ("counterparties", "accounts.id", "contains manual", "The account waits for a manual verification."),
    ("counterparties", "accounts.id", "contains automatic", "It waits for an automatic verification."),
    ("counterparties", "accounts.id", "contains fail", "The verification fails when it is queried."),
    ("counterparties", "accounts.id", "contains savings", "It is a savings account."),
    ("applications", "name", "contains REJECT", "The check of the application is REJECTED."),
    ("applications", "name", "contains REVIEW", "The check of the application is MANUAL_REVIEW."),
    ("applications", "name", "contains DOCUMENTS", "The check of the application is DOCUMENTS_NEEDED."),
    ("applications", "name", "contains PENDING", "The check of the application is WAITING."),
)


@cache
def simulations() -> tuple[SandboxSimulation, ...]:
    """Return every simulation, by area and path."""
    examples = examples_of(_EXAMPLES)
    found = (
        _simulation(each, examples.get(each.name, {}))
        for each in operations_below(_PACKAGE)
        if each.method == "POST" and _area_of(each)
    )
    return tuple(sorted(found, key=lambda each: (each.area, each.path)))


def magic_values() -> list[SandboxMagicValue]:
    """Return the magic values of the simulated counterparts."""
    return [SandboxMagicValue(*each) for each in _MAGIC_VALUES]


def _simulation(operation: Operation, example: Mapping[str, Any]) -> SandboxSimulation:
    summary, _, rest = (inspect.getdoc(operation.handler) or "").partition("\n\n")
    summary = " ".join(summary.split())
    return SandboxSimulation(
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
    path = operation.path.removeprefix(_PATH)
    return next((area for beginning, area in _AREAS.items() if path.startswith(beginning)), "")


def _parameters(operation: Operation) -> Iterator[SimulationParameter]:
    for name in operation.path_names:
        yield SimulationParameter(name=name, place="path", required=True, schema=_schema(operation.hints[name]))
    if operation.body is not None:
        schema = _schema(operation.body)
        for name, each in schema["properties"].items():
            yield SimulationParameter(name=name, place="body", required=name in schema.get("required", ()), schema=each)


def _schema(kind: Any) -> dict[str, Any]:  # noqa: ANN401 - any type
    """Return the JSON Schema of a type with its references inlined."""
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
