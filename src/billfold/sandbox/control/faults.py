"""Faults of a sandbox: what its APIs and its webhook deliveries do wrong on request, and the requests that met it.

They are in one file of the state directory, which each process locks while it reads and changes it.
"""

import fcntl
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal
from uuid import UUID

import msgspec

from billfold.http.schemas import WallTime

FAULTS_MAX = 20
"""Maximum number of faults; the oldest give way."""
REQUESTS_MAX = 200
"""Maximum number of requests that a fault keeps."""
_EMPTY = b"[]"


class FaultKind(StrEnum):
    """A kind of fault; the last four concern deliveries."""

    NONE = "none"
    ANSWER_LOST = "answer-lost"
    CONNECTION_DROPPED = "connection-dropped"
    RATE_LIMITED = "rate-limited"
    UNAVAILABLE = "unavailable"
    SLOW = "slow"
    TOKEN_EXPIRED = "token-expired"  # noqa: S105 - a name, not a secret
    NONCE_REQUIRED = "nonce-required"
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

    `answer-lost` is a 500 and `connection-dropped` a cut connection after the request was carried out. `rate-limited`
    (429) and `unavailable` (503) come before, with `seconds` as Retry-After; so do `token-expired` (401) and
    `nonce-required` (401), for requests whose DPoP proof has no nonce. `slow` answers after `seconds`; `new-fields`
    adds fields, and to a list a `type` that is new; `short-pages` has two entries a page; `none` only keeps the
    requests. `delivery-lost` is an attempt that fails; `delivery-late` comes after `seconds`, and what follows after
    it; `delivery-out-of-order` lets what follows overtake it.
    """

    fault: FaultKind
    target: Annotated[str, msgspec.Meta(max_length=100)] | None = None
    times: Annotated[int, msgspec.Meta(ge=0, le=1_000, description="How many requests meet it.")] = 1
    skip: Annotated[int, msgspec.Meta(ge=0, le=1_000, description="How many requests pass before.")] = 0
    percent: Annotated[int, msgspec.Meta(ge=1, le=100, description="How likely a request meets it.")] = 100
    seconds: Annotated[int, msgspec.Meta(ge=0, le=60)] = 1


class ObservedRequest(msgspec.Struct, kw_only=True):
    """A request of a fault's target. `status_code` is null if its answer was cut off."""

    idempotency_key: str | None
    status_code: int | None = None
    faults: list[FaultKind]
    received_at: WallTime
    answered_at: WallTime


class SandboxFault(FaultRequest, kw_only=True):
    """A fault with the first 200 requests of its target since; `times` and `skip` are what is left of them."""

    id: UUID
    requests: list[ObservedRequest]
    object_type: Literal["SandboxFault"] = "SandboxFault"


class SandboxFaults(msgspec.Struct, kw_only=True):
    """All faults since they were last cleared, oldest first."""

    items: list[SandboxFault]


class FaultStore:
    """The faults of one sandbox, shared by its processes."""

    def __init__(self, state_dir: Path) -> None:
        self._path = state_dir / "faults.json"

    @property
    def is_empty(self) -> bool:
        """Tell, without a lock, whether there are none."""
        return not self._path.exists() or self._path.stat().st_size <= len(_EMPTY)

    def take(self, target: str, *, delivery: bool = False) -> dict[FaultKind, int]:
        """Return the faults that a request or a delivery meets, each with its seconds, and count it."""
        met: dict[FaultKind, int] = {}
        with self.changed() as faults:
            for each in _concerned(faults, target, delivery=delivery):
                if each.skip:
                    each.skip -= 1
                elif each.times and secrets.randbelow(100) < each.percent:
                    each.times -= 1
                    met[each.fault] = each.seconds
        return met

    def record(self, target: str, request: ObservedRequest) -> None:
        """Keep a request with the faults of its operation."""
        with self.changed() as faults:
            for each in _concerned(faults, target, delivery=False):
                each.requests = [*each.requests, request][:REQUESTS_MAX]

    @contextmanager
    def changed(self) -> Iterator[list[SandboxFault]]:
        """Yield all faults, oldest first, while the file is locked, and write them."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with os.fdopen(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600), "r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            faults = msgspec.json.decode(file.read() or _EMPTY, type=list[SandboxFault])
            yield faults
            file.seek(0)
            file.truncate()
            file.write(msgspec.json.encode(faults[-FAULTS_MAX:]))


def _concerned(faults: list[SandboxFault], target: str, *, delivery: bool) -> list[SandboxFault]:
    return [each for each in faults if each.target in {None, target} and each.fault.is_of_delivery is delivery]
