"""The catalogue over HTTP."""

from typing import Any, Literal

import msgspec

from billfold.http.operations import TOKEN, get
from billfold.sandbox.simulations.catalogue import magic_values, simulations


class SimulationParameter(msgspec.Struct, kw_only=True):
    """A parameter; `schema` is JSON Schema, with nothing to look up elsewhere."""

    name: str
    place: Literal["path", "body"]
    required: bool
    schema: dict[str, Any]


class SandboxSimulation(msgspec.Struct, kw_only=True):
    """Something that can be let happen. `events` are the kinds that it raised when its example was recorded."""

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


class SandboxMagicValue(msgspec.Struct, kw_only=True):
    """A value by which a simulated counterpart decides, and what it does then."""

    area: str
    field: str
    value: str
    effect: str


class SandboxCatalogue(msgspec.Struct, kw_only=True):
    """All that a sandbox simulates."""

    items: list[SandboxSimulation]
    magic_values: list[SandboxMagicValue]


@get("/api/v1/sandbox/simulations/", TOKEN, name="sandbox_simulations", tag="sandbox")
async def list_simulations() -> SandboxCatalogue:
    """List what can be simulated: the operations with their parameters and events, and the magic values."""
    return msgspec.convert(
        {"items": simulations(), "magic_values": [each._asdict() for each in magic_values()]},
        SandboxCatalogue,
        from_attributes=True,
    )
