"""Faults of a sandbox: what its APIs and its webhook deliveries do wrong on request, and the requests that met it.

They are in one file of the state directory, which each process locks while it reads and changes it.
"""

import fcntl
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Literal
from uuid import UUID

import msgspec

from billfold.http.schemas import WallTime

FAULTS_MAX = 20
"""Maximum number of faults; the oldest give way."""
REQUESTS_MAX = 200
"""Maximum number of requests that a fault keeps."""
_FILE_NAME = "faults.json"
_EMPTY = b"[]"
_TIMES_MAX, _SECONDS_MAX, _ALWAYS = 1_000, 60, 100


class FaultKind(StrEnum):
    """What goes wrong. The last four are faults of deliveries."""

    NONE = "none"
    ANSWER_LOST = "answer-lost"
    CONNECTION_DROPPED = "connection-dropped"
    RATE_LIMITED = "rate-limited"
    UNAVAILABLE = "unavailable"
    SLOW = "slow"
    TOKEN_EXPIRED = "token-expired"  # noqa: S105 - a name, not a secret
    NEW_FIELDS = "new-fields"
    SHORT_PAGES = "short-pages"
    DELIVERY_LOST = "delivery-lost"
    DELIVERY_DOUBLED = "delivery-doubled"
    DELIVERY_LATE = "delivery-late"
    DELIVERY_OUT_OF_ORDER = "delivery-out-of-order"

    @property
    def is_of_delivery(self) -> bool:
        """True for a fault of webhook deliveries, false for one of API requests."""
        return self.startswith("delivery-")


class FaultRequest(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A fault. `target` is the operationId of its requests, or the event type of its deliveries; without one, all.

    `answer-lost` is a 500 and `connection-dropped` a cut connection after the request was carried out; `rate-limited`
    (429) and `unavailable` (503) come before, with `seconds` as Retry-After, and `token-expired` (401). `slow` answers
    after `seconds`. `new-fields` adds fields, and to a list a `type` that is new; `short-pages` has two entries a page.
    `none` only keeps the requests. `delivery-late` delivers after `seconds`, and what follows after it;
    `delivery-out-of-order` lets what follows overtake it.
    """

    fault: FaultKind
    target: Annotated[str, msgspec.Meta(max_length=100)] | None = None
    times: Annotated[int, msgspec.Meta(ge=1, le=_TIMES_MAX)] = 1
    skip: Annotated[int, msgspec.Meta(ge=0, le=_TIMES_MAX, description="Requests that pass before.")] = 0
    percent: Annotated[int, msgspec.Meta(ge=1, le=_ALWAYS, description="How likely a request meets it.")] = _ALWAYS
    seconds: Annotated[int, msgspec.Meta(ge=0, le=_SECONDS_MAX)] = 1


class ObservedRequest(msgspec.Struct, kw_only=True):
    """A request of a fault's target. `status` is null if the connection was cut."""

    target: str
    idempotency_key: str | None
    status: int | None
    faults: list[FaultKind]
    received_at: WallTime
    answered_at: WallTime


class SandboxFault(msgspec.Struct, kw_only=True):
    """A fault, how many more requests meet it, and the first 200 requests of its target since it was created."""

    id: UUID
    fault: FaultKind
    target: str | None
    times_left: int
    skip: int
    percent: int
    seconds: int
    requests: list[ObservedRequest]
    object_type: Literal["SandboxFault"] = "SandboxFault"

    def concerns(self, target: str, *, delivery: bool) -> bool:
        """Tell if a request of an operation, or a delivery of an event, is this fault's."""
        return self.target in {None, target} and self.fault.is_of_delivery is delivery


class SandboxFaults(msgspec.Struct, kw_only=True):
    """All faults since they were last cleared, oldest first."""

    items: list[SandboxFault]


class FaultStore:
    """The faults of one sandbox, shared by its processes."""

    def __init__(self, state_dir: Path) -> None:
        self._path = state_dir / _FILE_NAME

    def add(self, fault_id: UUID, data: FaultRequest) -> SandboxFault:
        """Add a fault, and return it; one that is there already under its id stays."""
        fields = msgspec.structs.asdict(data)
        fault = SandboxFault(id=fault_id, times_left=fields.pop("times"), requests=[], **fields)
        with self._changed() as faults:
            known = next((each for each in faults if each.id == fault_id), None)
            if known is None:
                faults[:] = [*faults, fault][-FAULTS_MAX:]
        return known or fault

    def read(self) -> list[SandboxFault]:
        """Return all faults, oldest first."""
        with self._changed() as faults:
            return faults

    def clear(self) -> None:
        """Remove all faults."""
        with self._changed() as faults:
            faults.clear()

    def exist(self) -> bool:
        """Tell, without a lock, whether there are any."""
        try:
            return self._path.stat().st_size > len(_EMPTY)
        except FileNotFoundError:
            return False

    def take(self, target: str, *, delivery: bool = False) -> list[SandboxFault]:
        """Return the faults that a request meets, and count them."""
        met: list[SandboxFault] = []
        if not self.exist():
            return met
        with self._changed() as faults:
            for each in faults:
                if not each.concerns(target, delivery=delivery):
                    continue
                if each.skip:
                    each.skip -= 1
                elif each.times_left and secrets.randbelow(_ALWAYS) < each.percent:
                    each.times_left -= 1
                    met.append(each)
        return met

    def record(self, request: ObservedRequest) -> None:
        """Keep a request of an API with the faults of its target."""
        with self._changed() as faults:
            for each in faults:
                if each.concerns(request.target, delivery=False) and len(each.requests) < REQUESTS_MAX:
                    each.requests.append(request)

    @contextmanager
    def _changed(self) -> Iterator[list[SandboxFault]]:
        """Yield the faults while the file is locked, and write them."""
        with self._path.open("a+b", opener=partial(os.open, mode=0o600)) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            faults = msgspec.json.decode(file.read() or _EMPTY, type=list[SandboxFault])
            yield faults
            file.seek(0)
            file.truncate()
            file.write(msgspec.json.encode(faults))
