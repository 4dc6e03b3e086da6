"""Typed calls that both APIs offer: accounts, events and subscriptions."""

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any
from uuid import UUID

import httpx
import msgspec

from billfold.accounts.pockets.schemas import Earnings, EarningsList, Pocket
from billfold.accounts.portals.schemas import FundingInstructions
from billfold.accounts.transactions.schemas import Transaction
from billfold.client.responses import ApiClient, ApiError, changes, gets, items_of, lists
from billfold.events.schemas import DeliveryAttempt, Event, EventType, Redelivery, StreamMessage
from billfold.events.webhooks.store import Subscription
from billfold.http.schemas import OffsetList
from billfold.payments.wires.schemas import Wire
from billfold.treasury.schemas import TradingStrategy

PATH = "/api/v1/events/stream/"
READ_TIMEOUT_SECONDS = 45.0
"""Three heartbeats: a connection that is silent for longer is considered dead."""
RECONNECT_DELAY_SECONDS = (1.0, 30.0)
_TRANSIENT = frozenset({429, 500, 502, 503, 504})


class EventStream:
    """Iterate over it: events, heartbeats and ends, in order, until you stop.

    A connection that breaks or falls silent is reopened after the last sequence, with a delay
    that grows with each failure. Raises ApiError for an error that is permanent.
    """

    def __init__(self, http: httpx.Client, *, after: int | None = None, kinds: Sequence[str] = ()) -> None:
        self._http = http
        self._kinds = list(kinds)
        self.sequence = after
        """The last sequence received; None before the first message."""

    def __iter__(self) -> Iterator[StreamMessage]:
        """Follow the stream forever."""
        delay_min, delay_max = RECONNECT_DELAY_SECONDS
        delay = delay_min
        while True:
            with suppress(httpx.TransportError):
                for message in self._read_connection():
                    delay = delay_min
                    yield message
            time.sleep(delay)
            delay = min(delay_max, delay * 2)

    def _read_connection(self) -> Iterator[StreamMessage]:
        query = {"event_type[]": self._kinds}
        headers = {} if self.sequence is None else {"last-event-id": str(self.sequence)}
        timeout = httpx.Timeout(10.0, read=READ_TIMEOUT_SECONDS)
        with self._http.stream("GET", PATH, params=query, headers=headers, timeout=timeout) as response:
            if response.is_error:
                response.read()
                if response.status_code not in _TRANSIENT:
                    raise ApiError(response)
                return
            for message in messages_of(response.iter_lines()):
                if message.sequence is not None:
                    self.sequence = message.sequence
                yield message


def messages_of(lines: Iterator[str]) -> Iterator[StreamMessage]:
    """Read server-sent events from lines."""
    fields: dict[str, str] = {}
    for line in lines:
        if line:
            name, _, value = line.partition(":")
            fields[name] = value.removeprefix(" ")
            continue
        if "data" in fields:
            yield _message(fields)
        fields = {}


def _message(fields: dict[str, str]) -> StreamMessage:
    event, data = fields.get("event", ""), fields["data"].encode()
    if event:
        position: dict[str, object] = msgspec.json.decode(data)
        last_sequence = position.get("sequence")
        return StreamMessage(event, data, last_sequence if isinstance(last_sequence, int) else None)
    return StreamMessage(event, data, int(fields["id"]) if "id" in fields else None)


_SUBSCRIPTIONS = "/api/v1/subscriptions/"


class BankApi(ApiClient):
    """Calls with an httpx client that authenticates itself. Filters and fields are named as in the API."""

    strategies = gets("/api/v2/trading-strategies/", OffsetList[TradingStrategy])
    pocket = gets("/api/v2/pockets/{}/", Pocket)
    pocket_earnings = gets("/api/v2/pockets/{}/earnings/", Earnings)
    """Of a period: `period="mtd"`."""
    earnings = gets("/api/v2/earnings/", EarningsList)
    funding_instructions = gets("/api/v2/pockets/{}/portals/{}/funding-instructions/", FundingInstructions)
    transactions = lists("/api/v2/transactions/", Transaction)
    wires = lists("/api/v1/wires/", Wire)
    wire = gets("/api/v1/wires/{}/", Wire)

    event_types = items_of("/api/v1/events/types/", EventType)
    """The kinds of events, with the JSON Schema of each payload."""
    events = lists("/api/v1/events/", Event)
    """Filters: `subscription_id=`, `after=`, `order="asc"`."""
    event = gets("/api/v1/events/{}/", Event)
    subscriptions = lists(_SUBSCRIPTIONS, Subscription)
    subscription = gets(f"{_SUBSCRIPTIONS}{{}}/", Subscription)
    change_subscription = changes("PATCH", f"{_SUBSCRIPTIONS}{{}}/", Subscription)
    unsubscribe = changes("DELETE", f"{_SUBSCRIPTIONS}{{}}/", type(None))
    attempts = lists(f"{_SUBSCRIPTIONS}{{}}/attempts/", DeliveryAttempt)
    """The attempts to deliver; those of one event with `event_id=`."""

    def stream(self, *, after: int | None = None, kinds: Sequence[str] = ()) -> EventStream:
        """Return the stream of events after a sequence, or from now on."""
        return EventStream(self._http, after=after, kinds=kinds)

    def subscribe(
        self, url: str, kinds: Sequence[str], *, shared_secret: str, key: str | None = None, **fields: Any
    ) -> Subscription:
        """Subscribe a url to kinds of events; `retry_policy=`, `description=` as in the API."""
        body = {"url": url, "events": list(kinds), "shared_secret": shared_secret, **fields}
        return self._change("POST", _SUBSCRIPTIONS, body, kind=Subscription, key=key)

    def resend(self, subscription_id: UUID, event_id: UUID) -> None:
        """Deliver one event once more."""
        self._redeliver(subscription_id, "resend", event_id=event_id)

    def recover(self, subscription_id: UUID, since: datetime) -> int:
        """Deliver again the events that failed since then; return how many."""
        return self._redeliver(subscription_id, "recover", since=since)

    def replay_missing(self, subscription_id: UUID, since: datetime) -> int:
        """Deliver events that were raised since then and never queued; return how many."""
        return self._redeliver(subscription_id, "replay-missing", since=since)

    def send_example(self, subscription_id: UUID, kind: str | None = None) -> None:
        """Deliver an example of a kind."""
        self._redeliver(subscription_id, "send-example", event_type=kind)

    def _redeliver(self, subscription_id: UUID, operation: str, **parameters: object) -> int:
        path = f"{_SUBSCRIPTIONS}{subscription_id}/{operation}/"
        body: dict[str, Any] = msgspec.to_builtins(parameters)
        return self._change("POST", path, body, kind=Redelivery).count
