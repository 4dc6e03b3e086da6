"""Subscriptions, their deliveries and the attempts, as they are read and answered. Instants are wall time."""

from __future__ import annotations

from datetime import datetime
from typing import Literal
from uuid import UUID

import msgspec


class RetryPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """When a failed attempt is repeated. `maximum_attempts` counts the first one.

    No status codes mean every answer but a 2xx, and none at all; 0 stands for no answer.
    """

    retry_on_status_codes: list[int]
    backoff_coefficient: float
    maximum_attempts: int
    initial_interval_seconds: float
    maximum_interval_seconds: float


class Subscription(msgspec.Struct, frozen=True, kw_only=True):
    """Who receives which kinds of events. The shared secret is never shown."""

    id: UUID
    url: str
    description: str
    events: list[str]
    status: Literal["enabled", "disabled"]
    disabled_because: str | None
    retry_policy: RetryPolicy | None
    time_created: datetime
    updated_at: datetime
    object_type: Literal["Subscription"] = "Subscription"


class EventSimulation(msgspec.Struct, frozen=True, kw_only=True):
    """A simulated event: delivered like any other, but not in the log. `payload` is JSON text."""

    event_id: UUID
    kind: str
    raised_at: datetime
    payload: str


class SubscriptionQueue(msgspec.Struct, frozen=True, kw_only=True):
    """A subscription as its worker sees it, with the secrets in force, the newest first."""

    subscription_id: UUID
    customer_id: UUID | None
    url: str
    retry_policy: RetryPolicy | None
    failures: int
    secrets: tuple[str, ...]


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """One event that is to be delivered now: its body, and how often that was tried."""

    event_id: UUID
    body: bytes
    tries: int


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """What resulted from one attempt, and what follows from it."""

    attempt_id: UUID
    subscription_id: UUID
    event_id: UUID
    response_code: int
    response_message: str
    called_at: datetime
    duration_ms: int
    outcome: DeliveryOutcome


class DeliveryOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """What follows from an answer: the delivery's state, when it and its queue continue.

    `due_at` is the next attempt of a pending delivery. `gone` is set when the receiver answered 410.
    """

    state: Literal["pending", "delivered", "failed"]
    due_at: datetime | None = None
    paused_until: datetime | None = None
    gone: bool = False
