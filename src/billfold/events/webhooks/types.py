"""Subscriptions, what they are owed, and what resulted from each attempt. Instants are wall time."""

from __future__ import annotations

from datetime import datetime
from typing import Literal
from uuid import UUID

import msgspec
from msgspec import UNSET, UnsetType

Status = Literal["enabled", "disabled"]


class RetryPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """When an attempt that failed is repeated. `maximum_attempts` counts the first one.

    No status codes mean every answer but a 2xx, and none at all; 0 stands for no answer.
    """

    retry_on_status_codes: tuple[int, ...]
    backoff_coefficient: float
    maximum_attempts: int
    initial_interval_seconds: float
    maximum_interval_seconds: float


class SubscriptionRow(msgspec.Struct, frozen=True, kw_only=True):
    """A subscription as stored, without its secrets."""

    subscription_id: UUID
    partner_id: UUID
    customer_id: UUID | None
    url: str
    description: str
    events: tuple[str, ...]
    status: Status
    disabled_because: str | None
    retry_policy: RetryPolicy | None
    created_at: datetime
    updated_at: datetime


class SubscriptionChanges(msgspec.Struct, frozen=True, kw_only=True):
    """What is to become of a subscription; what is left out stays."""

    url: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    events: tuple[str, ...] | UnsetType = UNSET
    shared_secret: str | UnsetType = UNSET
    retry_policy: RetryPolicy | UnsetType | None = UNSET
    status: Status | UnsetType = UNSET


class EventSimulation(msgspec.Struct, frozen=True, kw_only=True):
    """A simulated event: delivered like any other, but not in the log. `payload` is JSON text."""

    event_id: UUID
    kind: str
    raised_at: datetime
    payload: str


class AttemptRow(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt to deliver one event. `response_code` is 0 when there was no answer."""

    attempt_id: UUID
    subscription_id: UUID
    event_id: UUID
    success: bool
    response_code: int
    response_message: str
    called_at: datetime
    duration_ms: int


class SubscriptionQueue(msgspec.Struct, frozen=True, kw_only=True):
    """A subscription as its worker sees it, with the secrets in force, the newest first."""

    subscription_id: UUID
    customer_id: UUID | None
    url: str
    retry_policy: RetryPolicy | None
    failures: int
    secrets: tuple[str, ...]


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """One event that is to be delivered now: its body, and how often it was tried."""

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
    """What follows from an answer: the delivery's state, when it and its queue go on.

    `due_at` is the next try of a delivery that is pending. `gone` is set when the receiver said
    that it will never listen again.
    """

    state: Literal["pending", "delivered", "failed"]
    due_at: datetime | None = None
    paused_until: datetime | None = None
    gone: bool = False
