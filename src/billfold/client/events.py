"""Typed calls about events and subscriptions, the same for both APIs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec

from billfold.client.event_stream import EventStream
from billfold.client.responses import ApiClient
from billfold.events.schemas import Event, EventType, Redelivery
from billfold.events.webhooks.types import DeliveryAttempt, Subscription
from billfold.http.schemas import OffsetList

_EVENTS, _SUBSCRIPTIONS = "/api/v1/events/", "/api/v1/subscriptions/"


class EventCalls(ApiClient):
    """What can be asked about events. Fields are named as in the API."""

    def event_types(self) -> list[EventType]:
        """Return the kinds of events, with the JSON Schema of each payload."""
        return self._get(f"{_EVENTS}types/", OffsetList[EventType]).items

    def events(self, **filters: Any) -> Iterator[Event]:
        """Go through events: `subscription_id=`, `after=`, `order="asc"`."""
        return self._iterate(_EVENTS, Event, filters)

    def event(self, event_id: UUID) -> Event:
        """Return one event."""
        return self._get(f"{_EVENTS}{event_id}/", Event)

    def stream(self, *, after: int | None = None, kinds: Sequence[str] = ()) -> EventStream:
        """Return the stream of events after a sequence, or from now on."""
        return EventStream(self._http, after=after, kinds=kinds)

    def subscriptions(self) -> Iterator[Subscription]:
        """Go through subscriptions, newest first."""
        return self._iterate(_SUBSCRIPTIONS, Subscription)

    def subscription(self, subscription_id: UUID) -> Subscription:
        """Return one subscription."""
        return self._get(f"{_SUBSCRIPTIONS}{subscription_id}/", Subscription)

    def subscribe(
        self, url: str, kinds: Sequence[str], *, shared_secret: str, key: str | None = None, **fields: Any
    ) -> Subscription:
        """Subscribe a url to kinds of events; `retry_policy=`, `description=` as in the API."""
        body = {"url": url, "events": list(kinds), "shared_secret": shared_secret, **fields}
        return self._change("POST", _SUBSCRIPTIONS, body, kind=Subscription, key=key)

    def change_subscription(self, subscription_id: UUID, **changes: Any) -> Subscription:
        """Change a subscription: `status="disabled"`, `shared_secret=`, `events=`, ..."""
        path = f"{_SUBSCRIPTIONS}{subscription_id}/"
        return self._change("PATCH", path, changes, kind=Subscription)

    def unsubscribe(self, subscription_id: UUID) -> None:
        """Delete a subscription."""
        self._change("DELETE", f"{_SUBSCRIPTIONS}{subscription_id}/", {}, kind=type(None))

    def attempts(self, subscription_id: UUID, event_id: UUID | None = None) -> Iterator[DeliveryAttempt]:
        """Go through what was attempted to deliver, newest first."""
        path = f"{_SUBSCRIPTIONS}{subscription_id}/attempts/"
        return self._iterate(path, DeliveryAttempt, {"event_id": event_id})

    def resend(self, subscription_id: UUID, event_id: UUID) -> None:
        """Deliver one event once more."""
        self._redeliver(subscription_id, "resend", event_id=event_id)

    def recover(self, subscription_id: UUID, since: datetime) -> int:
        """Deliver once more what failed since then; return how many events that is."""
        return self._redeliver(subscription_id, "recover", since=since)

    def replay_missing(self, subscription_id: UUID, since: datetime) -> int:
        """Deliver what was raised since then and never queued; return how many events that is."""
        return self._redeliver(subscription_id, "replay-missing", since=since)

    def send_example(self, subscription_id: UUID, kind: str | None = None) -> None:
        """Deliver an example of a kind."""
        self._redeliver(subscription_id, "send-example", event_type=kind)

    def _redeliver(self, subscription_id: UUID, operation: str, **parameters: object) -> int:
        path = f"{_SUBSCRIPTIONS}{subscription_id}/{operation}/"
        body: dict[str, Any] = msgspec.to_builtins(parameters)
        return self._change("POST", path, body, kind=Redelivery).count
