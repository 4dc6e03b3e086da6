"""Forks of the bank, and the tasks that concern it as a whole.

A task is answered at once and done by the process that runs the sandbox. Meanwhile other requests wait, or get 503.
"""

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

import msgspec

from billfold.http.operations import TOKEN, delete, get
from billfold.http.schemas import one_of
from billfold.identity.partners.caller import Caller
from billfold.ledger.bank import Bank
from billfold.platform.dates import iso_z
from billfold.platform.errors import NotFound
from billfold.sandbox.control.socket import SandboxControl
from billfold.sandbox.control.types import DropFork, ListForks, ListTasks, StartTask, Task, TaskKind, TaskStatus
from billfold.sandbox.forks.types import OPENING, Fork, ForkName
from billfold.sandbox.operations import request_id, require_first_partner, sandbox_post

BUSY = ("sandbox-of-another-partner", "sandbox-busy", "unavailable")
_KNOWN = ("not-found", "unavailable")


class ForkRequest(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The name of the copy that is to be made."""

    name: ForkName


class SandboxFork(msgspec.Struct, kw_only=True):
    """A copy of the whole bank: what its clock showed, when it was made, and its bytes on the disk."""

    name: str
    now: str
    created_at: str
    size: int
    object_type: Literal["SandboxFork"] = "SandboxFork"


class SandboxForks(msgspec.Struct, kw_only=True):
    """All copies, oldest first. A reset returns to `opening`."""

    items: list[SandboxFork]


class SandboxTaskStep(msgspec.Struct, kw_only=True):
    """A step of a task, and what came of it."""

    title: str
    status: Annotated[str, one_of(*TaskStatus)]
    detail: str | None


class SandboxTask(msgspec.Struct, kw_only=True):
    """A task that concerns the whole bank. `name` is that of the fork or scenario; `detail` says why it failed."""

    id: UUID
    kind: Annotated[str, one_of(*TaskKind)]
    name: str
    status: Annotated[str, one_of(*TaskStatus)]
    detail: str | None
    steps: list[SandboxTaskStep]
    started_at: str
    ended_at: str | None
    object_type: Literal["SandboxTask"] = "SandboxTask"


class SandboxTasks(msgspec.Struct, kw_only=True):
    """The tasks since the sandbox was started, newest first."""

    items: list[SandboxTask]


@get("/api/v1/sandbox/forks/", TOKEN, name="sandbox_forks", tag="sandbox", refuses=("unavailable",))
async def list_forks(control: SandboxControl) -> SandboxForks:
    """List the copies of the bank."""
    forks = await control.request(ListForks(), list[Fork])
    return SandboxForks(
        items=[
            SandboxFork(name=each.name, now=iso_z(each.now), created_at=iso_z(each.created_at), size=each.size)
            for each in forks
        ]
    )


@sandbox_post(
    "forks/",
    name="sandbox_fork",
    refuses=("fork-exists", "too-many-forks", "fork-disk-full", "fork-not-possible", *BUSY),
)
async def fork(caller: Caller, bank: Bank, control: SandboxControl, data: ForkRequest) -> SandboxTask:
    """Copy the whole bank at this moment: its database, files, cards, local chain and clock."""
    await require_first_partner(bank, caller)
    return await start_task(caller, control, TaskKind.FORK, data.name)


@sandbox_post("forks/{name}/rewind/", name="sandbox_rewind", refuses=("not-found", "fork-disk-full", *BUSY))
async def rewind(caller: Caller, bank: Bank, control: SandboxControl, name: str) -> SandboxTask:
    """Let the bank be what it was when this copy was made. What happened since is gone; the copy stays."""
    await require_first_partner(bank, caller)
    return await start_task(caller, control, TaskKind.REWIND, name)


@delete(
    "/api/v1/sandbox/forks/{name}/",
    TOKEN,
    name="sandbox_drop_fork",
    tag="sandbox",
    refuses=("not-found", "fork-needed", *BUSY),
)
async def drop_fork(caller: Caller, bank: Bank, control: SandboxControl, name: str) -> None:
    """Remove a copy. The bank is not affected."""
    await require_first_partner(bank, caller)
    await control.request(DropFork(name), type(None))


@sandbox_post("reset/", name="sandbox_reset", refuses=("not-found", "fork-disk-full", *BUSY))
async def reset(caller: Caller, bank: Bank, control: SandboxControl) -> SandboxTask:
    """Let the bank be what it was after its opening story, or after its first start without one."""
    await require_first_partner(bank, caller)
    return await start_task(caller, control, TaskKind.RESET, OPENING)


@get("/api/v1/sandbox/tasks/", TOKEN, name="sandbox_tasks", tag="sandbox", refuses=("unavailable",))
async def list_tasks(control: SandboxControl) -> SandboxTasks:
    """List the newest tasks: forks, rewinds, resets and scenarios."""
    return SandboxTasks(items=[render_task(each) for each in await control.request(ListTasks(), list[Task])])


@get("/api/v1/sandbox/tasks/{task_id}/", TOKEN, name="sandbox_task", tag="sandbox", refuses=_KNOWN)
async def get_task(control: SandboxControl, task_id: UUID) -> SandboxTask:
    """Show how far a task is."""
    for each in await control.request(ListTasks(), list[Task]):
        if each.id == task_id:
            return render_task(each)
    raise NotFound("There is no such task since the sandbox was started.")


async def start_task(caller: Caller, control: SandboxControl, kind: TaskKind, name: str) -> SandboxTask:
    """Start a task under the id of its request."""
    return render_task(await control.request(StartTask(id=request_id(caller), kind=kind, name=name), Task))


def render_task(task: Task) -> SandboxTask:
    """Return a task as it is answered."""
    return SandboxTask(
        id=task.id,
        kind=task.kind,
        name=task.name,
        status=task.status,
        detail=task.detail,
        steps=[SandboxTaskStep(title=each.title, status=each.status, detail=each.detail) for each in task.steps],
        started_at=iso_z(task.started_at),
        ended_at=_instant(task.ended_at),
    )


def _instant(at: datetime | None) -> str | None:
    return None if at is None else iso_z(at)
