"""The scenarios over HTTP."""

from typing import Literal

import msgspec

from billfold.http.operations import TOKEN, get
from billfold.identity.partners.caller import Caller
from billfold.ledger.bank import Bank
from billfold.platform.errors import NotFound
from billfold.sandbox.control.routes import BUSY, SandboxTask, start_task
from billfold.sandbox.control.socket import SandboxControl
from billfold.sandbox.control.types import TaskKind
from billfold.sandbox.operations import require_first_partner, sandbox_post
from billfold.sandbox.scenarios.playing import SCENARIOS


class SandboxScenario(msgspec.Struct, kw_only=True):
    """A story, and the titles of its steps."""

    name: str
    description: str
    steps: list[str]
    object_type: Literal["SandboxScenario"] = "SandboxScenario"


class SandboxScenarios(msgspec.Struct, kw_only=True):
    """All scenarios."""

    items: list[SandboxScenario]


@get("/api/v1/sandbox/scenarios/", TOKEN, name="sandbox_scenarios", tag="sandbox")
async def list_scenarios() -> SandboxScenarios:
    """List the scenarios that can be played."""
    return SandboxScenarios(
        items=[
            SandboxScenario(name=each.name, description=each.description, steps=[step.title for step in each.steps])
            for each in SCENARIOS.values()
        ]
    )


@sandbox_post(
    "scenarios/{name}/play/",
    name="sandbox_play_scenario",
    refuses=("not-found", *BUSY),
)
async def play_scenario(caller: Caller, bank: Bank, control: SandboxControl, name: str) -> SandboxTask:
    """Play a scenario with a customer of its own: real objects, real events, the clock goes on. It ends verified."""
    await require_first_partner(bank, caller)
    if name not in SCENARIOS:
        raise NotFound("There is no such scenario. GET /api/v1/sandbox/scenarios/ lists them.")
    return await start_task(caller, control, TaskKind.PLAY, name)
