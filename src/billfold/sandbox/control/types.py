"""A task of the sandbox, and what is requested of the process that does it."""

from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

import msgspec


class TaskKind(StrEnum):
    """What a task does to the bank."""

    FORK = "FORK"
    REWIND = "REWIND"
    RESET = "RESET"
    PLAY = "PLAY"


class TaskStatus(StrEnum):
    """How far a task is."""

    RUNNING = "RUNNING"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"


class TaskStep(msgspec.Struct, kw_only=True):
    """A step of a task, in the order in which they are done. `detail` says what came of it."""

    title: str
    status: TaskStatus
    detail: str | None = None


class Task(msgspec.Struct, kw_only=True):
    """A task and its steps so far. `name` is that of the fork or scenario; `detail` says why it failed."""

    id: UUID
    kind: TaskKind
    name: str
    started_at: datetime
    status: TaskStatus = TaskStatus.RUNNING
    ended_at: datetime | None = None
    detail: str | None = None
    steps: list[TaskStep] = []


class StartTask(msgspec.Struct, frozen=True, tag=True):
    """Start a task; one of this id that is known is the answer."""

    id: UUID
    kind: TaskKind
    name: str


class ListTasks(msgspec.Struct, frozen=True, tag=True):
    """List the newest tasks."""


class ListForks(msgspec.Struct, frozen=True, tag=True):
    """List the forks."""


class DropFork(msgspec.Struct, frozen=True, tag=True):
    """Remove a fork."""

    name: str


ControlRequest = StartTask | ListTasks | ListForks | DropFork


class ControlResponse(msgspec.Struct, frozen=True, omit_defaults=True):
    """The result of a request, or the problem that refuses it."""

    result: Any = None
    code: str | None = None
    detail: str = ""
