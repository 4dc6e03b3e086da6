"""Forks of the bank, scenarios, faults, and the tasks that concern it as a whole.

A task is answered at once and done by the process that runs the sandbox. Other requests wait until then, or get 503.
"""

from typing import Literal
from uuid import UUID

import msgspec

from billfold.events.kinds import KINDS
from billfold.http.operations import TOKEN, delete, get, operations_of_parts
from billfold.identity.partners.caller import Caller
from billfold.ledger.bank import Bank
from billfold.platform.errors import InvalidInput, NotFound
from billfold.sandbox.control import socket
from billfold.sandbox.control.faults import FaultRequest, FaultStore, SandboxFault, SandboxFaults
from billfold.sandbox.control.socket import SandboxControl, SandboxTask, TaskKind
from billfold.sandbox.forks.copies import OPENING, ForkName, SandboxFork
from billfold.sandbox.routes.catalogue import SandboxCatalogue, magic_values, simulations
from billfold.sandbox.routes.operations import request_id, require_first_partner, sandbox_post
from billfold.sandbox.scenarios.player import SCENARIOS

_BUSY = ("sandbox-of-another-partner", "sandbox-busy", "unavailable")


class ForkRequest(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The name of the new copy."""

    name: ForkName


class SandboxForks(msgspec.Struct, kw_only=True):
    """All copies, oldest first. A reset returns to `opening`."""

    items: list[SandboxFork]


class SandboxScenario(msgspec.Struct, kw_only=True):
    """A story, and the titles of its steps. A bad day of the trading desk ends with what its operators see."""

    name: str
    description: str
    is_bad_day: bool
    steps: list[str]
    object_type: Literal["SandboxScenario"] = "SandboxScenario"


class SandboxScenarios(msgspec.Struct, kw_only=True):
    """All scenarios."""

    items: list[SandboxScenario]


class SandboxTasks(msgspec.Struct, kw_only=True):
    """The tasks since the sandbox was started, newest first."""

    items: list[SandboxTask]


@get("/api/v1/sandbox/forks/", TOKEN, name="sandbox_forks", tag="sandbox", refuses=("unavailable",))
async def list_forks(control: SandboxControl) -> SandboxForks:
    """List the copies of the bank."""
    return SandboxForks(items=await control.request(socket.ListForks(), list[SandboxFork]))


@sandbox_post(
    "forks/",
    name="sandbox_fork",
    refuses=("fork-exists", "too-many-forks", "fork-disk-full", "fork-not-possible", *_BUSY),
)
async def fork(caller: Caller, bank: Bank, control: SandboxControl, data: ForkRequest) -> SandboxTask:
    """Copy the whole bank at this moment: its database, files, cards, local chain and clock."""
    await require_first_partner(bank, caller)
    return await _start(caller, control, TaskKind.FORK, data.name)


@sandbox_post("forks/{name}/rewind/", name="sandbox_rewind", refuses=("not-found", "fork-disk-full", *_BUSY))
async def rewind(caller: Caller, bank: Bank, control: SandboxControl, name: str) -> SandboxTask:
    """Restore the bank to the state of this copy. Later changes are lost; the copy stays."""
    await require_first_partner(bank, caller)
    return await _start(caller, control, TaskKind.REWIND, name)


@delete(
    "/api/v1/sandbox/forks/{name}/",
    TOKEN,
    name="sandbox_drop_fork",
    tag="sandbox",
    refuses=("not-found", "fork-needed", *_BUSY),
)
async def drop_fork(caller: Caller, bank: Bank, control: SandboxControl, name: str) -> None:
    """Remove a copy. The bank is not affected."""
    await require_first_partner(bank, caller)
    await control.request(socket.DropFork(name), type(None))


@sandbox_post("reset/", name="sandbox_reset", refuses=("not-found", "fork-disk-full", *_BUSY))
async def reset(caller: Caller, bank: Bank, control: SandboxControl) -> SandboxTask:
    """Restore the bank to its state after the opening story, or after its first start without one."""
    await require_first_partner(bank, caller)
    return await _start(caller, control, TaskKind.RESET, OPENING)


@get("/api/v1/sandbox/tasks/", TOKEN, name="sandbox_tasks", tag="sandbox", refuses=("unavailable",))
async def list_tasks(control: SandboxControl) -> SandboxTasks:
    """List the newest tasks: forks, rewinds, resets and scenarios."""
    return SandboxTasks(items=await control.request(socket.ListTasks(), list[SandboxTask]))


@get(
    "/api/v1/sandbox/tasks/{task_id}/", TOKEN, name="sandbox_task", tag="sandbox", refuses=("not-found", "unavailable")
)
async def get_task(control: SandboxControl, task_id: UUID) -> SandboxTask:
    """Get the progress of a task."""
    for each in await control.request(socket.ListTasks(), list[SandboxTask]):
        if each.id == task_id:
            return each
    raise NotFound("There is no such task since the sandbox was started.")


@get("/api/v1/sandbox/scenarios/", TOKEN, name="sandbox_scenarios", tag="sandbox")
async def list_scenarios() -> SandboxScenarios:
    """List the scenarios that can be played."""
    return SandboxScenarios(
        items=[
            SandboxScenario(
                name=each.name,
                description=each.description,
                is_bad_day=each.is_bad_day,
                steps=[step.title for step in each.steps],
            )
            for each in SCENARIOS.values()
        ]
    )


@sandbox_post(
    "scenarios/{name}/play/",
    name="sandbox_play_scenario",
    refuses=("not-found", *_BUSY),
)
async def play_scenario(caller: Caller, bank: Bank, control: SandboxControl, name: str) -> SandboxTask:
    """Play a scenario with its own customer: real objects, real events, a moving clock. It ends with a verification."""
    await require_first_partner(bank, caller)
    if name not in SCENARIOS:
        raise NotFound("There is no such scenario. GET /api/v1/sandbox/scenarios/ lists them.")
    return await _start(caller, control, TaskKind.PLAY, name)


@get("/api/v1/sandbox/simulations/", TOKEN, name="sandbox_simulations", tag="sandbox")
async def list_simulations() -> SandboxCatalogue:
    """List the simulations: the operations with their parameters and events, and the magic values."""
    return SandboxCatalogue(items=list(simulations()), magic_values=magic_values())


@sandbox_post("faults/", name="sandbox_fault", status=201, refuses=("sandbox-of-another-partner",))
async def add_fault(caller: Caller, bank: Bank, faults: FaultStore, data: FaultRequest) -> SandboxFault:
    """Let requests of an API, or deliveries of events, go wrong.

    Requests of the sandbox's own operations never do. A request meets each fault of its operation.
    """
    await require_first_partner(bank, caller)
    targets = KINDS if data.fault.is_of_delivery else {each.name for each in operations_of_parts()}
    if data.target is not None and data.target not in targets:
        what = "an event type" if data.fault.is_of_delivery else "an operationId of the bank"
        raise InvalidInput.at("body", "target", msg=f"is not {what}")
    with faults.changed() as known:
        known.append(SandboxFault(id=request_id(caller), requests=[], **msgspec.structs.asdict(data)))
        return known[-1]


@get("/api/v1/sandbox/faults/", TOKEN, name="sandbox_faults", tag="sandbox", refuses=("sandbox-of-another-partner",))
async def list_faults(caller: Caller, bank: Bank, faults: FaultStore) -> SandboxFaults:
    """List the faults with the requests of their targets."""
    await require_first_partner(bank, caller)
    with faults.changed() as known:
        return SandboxFaults(items=known)


@delete(
    "/api/v1/sandbox/faults/",
    TOKEN,
    name="sandbox_clear_faults",
    tag="sandbox",
    refuses=("sandbox-of-another-partner",),
)
async def clear_faults(caller: Caller, bank: Bank, faults: FaultStore) -> None:
    """Clear all faults and what they have kept."""
    await require_first_partner(bank, caller)
    with faults.changed() as known:
        known.clear()


async def _start(caller: Caller, control: SandboxControl, kind: TaskKind, name: str) -> SandboxTask:
    """Start a task with the id of its request."""
    return await control.request(socket.StartTask(id=request_id(caller), kind=kind, name=name), SandboxTask)
