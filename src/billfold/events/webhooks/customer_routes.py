"""Webhook subscriptions of the customer, and how their deliveries are mended."""

from __future__ import annotations

from uuid import UUID

from msgspec import UNSET, UnsetType

from billfold.events.customer_routes import subscriber_of
from billfold.events.schemas import DeliveryAttempt, Redelivery, Subscription
from billfold.events.webhooks import requests as forms
from billfold.events.webhooks.requests import (
    ChangedSubscription,
    CustomerKinds,
    Example,
    NewSubscription,
    Resend,
    Since,
)
from billfold.http.customer_api.member import CustomerCaller
from billfold.http.limits.rate_groups import SUBSCRIPTIONS
from billfold.http.list_params import ListQuery
from billfold.http.operations import delete, get, patch, post, with_scope
from billfold.http.schemas.pages import CursorList
from billfold.ledger.bank import Bank

READS = with_scope("subscriptions.read", SUBSCRIPTIONS)
WRITES = with_scope("subscriptions.write", SUBSCRIPTIONS)
_ONE = "/api/v1/subscriptions/{subscription_id}/"


class CreateSubscription(NewSubscription, forbid_unknown_fields=True, kw_only=True):
    """Where to send which kinds of events. Without a retry policy there is one attempt."""

    events: CustomerKinds


class UpdateSubscription(ChangedSubscription, forbid_unknown_fields=True, kw_only=True):
    """What is to change; what is left out stays. `retry_policy` null takes the policy away."""

    events: CustomerKinds | UnsetType = UNSET


@post("/api/v1/subscriptions/", WRITES)
async def create_subscription(member: CustomerCaller, bank: Bank, data: CreateSubscription) -> Subscription:
    """Subscribe a url to kinds of events that are raised from now on."""
    return await forms.create(member, bank, subscriber_of(member), data)


@get("/api/v1/subscriptions/", READS)
async def list_subscriptions(member: CustomerCaller, bank: Bank, wanted: ListQuery) -> CursorList[Subscription]:
    """List subscriptions, newest first."""
    return await forms.subscription_page(bank, subscriber_of(member), wanted)


@get(_ONE, READS)
async def get_subscription(member: CustomerCaller, bank: Bank, subscription_id: UUID) -> Subscription:
    """Read a subscription. Its shared secret is never shown."""
    return await forms.read(bank, subscriber_of(member), subscription_id)


@patch(_ONE, WRITES, status=202)
async def update_subscription(
    member: CustomerCaller, bank: Bank, subscription_id: UUID, data: UpdateSubscription
) -> Subscription:
    """Change a subscription, switch it off and on again, or give it another secret.

    A new secret signs at once; for 24 hours the old one signs beside it. What is raised while a
    subscription is disabled is not delivered later, unless `replay-missing` asks for it.
    """
    return await forms.change(member, bank, subscriber_of(member), subscription_id, data)


@delete(_ONE, WRITES, status=202)
async def delete_subscription(member: CustomerCaller, bank: Bank, subscription_id: UUID) -> None:
    """Delete a subscription: nothing is delivered to it any more."""
    await forms.end(member, bank, subscriber_of(member), subscription_id)


@get(f"{_ONE}attempts/", READS)
async def list_delivery_attempts(
    member: CustomerCaller, bank: Bank, subscription_id: UUID, wanted: ListQuery, event_id: UUID | None = None
) -> CursorList[DeliveryAttempt]:
    """List what was attempted to deliver, newest first; of one event with `event_id`."""
    subscriber = subscriber_of(member)
    return await forms.attempt_page(bank, subscriber, subscription_id, wanted, event_id)


@post(f"{_ONE}resend/", WRITES, status=202, refuses=("subscription-disabled",))
async def resend_event(member: CustomerCaller, bank: Bank, subscription_id: UUID, data: Resend) -> Redelivery:
    """Deliver one event once more, whatever came of it before."""
    return await forms.resend(member, bank, subscriber_of(member), subscription_id, data)


@post(f"{_ONE}recover/", WRITES, status=202, refuses=("subscription-disabled",))
async def recover_events(member: CustomerCaller, bank: Bank, subscription_id: UUID, data: Since) -> Redelivery:
    """Deliver once more every event whose delivery failed since a time of the wall clock."""
    return await forms.recover(member, bank, subscriber_of(member), subscription_id, data)


@post(f"{_ONE}replay-missing/", WRITES, status=202, refuses=("subscription-disabled",))
async def replay_missing_events(member: CustomerCaller, bank: Bank, subscription_id: UUID, data: Since) -> Redelivery:
    """Deliver every event with a later `timestamp` that this subscription was never to be told of.

    That is what was raised before it was made, or while it was disabled or wanted other kinds.
    """
    return await forms.replay_missing(member, bank, subscriber_of(member), subscription_id, data)


@post(f"{_ONE}send-example/", WRITES, status=202, refuses=("subscription-disabled",))
async def send_example_event(member: CustomerCaller, bank: Bank, subscription_id: UUID, data: Example) -> Redelivery:
    """Deliver an example of a kind, to see whether the receiver takes it. Nothing has happened."""
    return await forms.send_example(member, bank, subscriber_of(member), subscription_id, data)
