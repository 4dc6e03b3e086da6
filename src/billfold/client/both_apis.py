"""Typed calls that both APIs offer: what is read of accounts, events and subscriptions."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec

from billfold.accounts.pockets.schemas import Earnings, EarningsList, Pocket
from billfold.accounts.portals.schemas import FundingInstructions
from billfold.accounts.transactions.schemas import Transaction
from billfold.client.event_stream import EventStream
from billfold.client.responses import ApiClient, changes, gets, items_of, lists
from billfold.events.schemas import Event, EventType, Redelivery
from billfold.events.types import DeliveryAttempt
from billfold.events.webhooks.types import Subscription
from billfold.http.schemas import OffsetList
from billfold.payments.wires.schemas import Wire
from billfold.treasury.schemas import TradingStrategy

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
