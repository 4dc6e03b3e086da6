"""Subscriptions of the Customer API: the operations whose bodies name its event types."""

from __future__ import annotations

from uuid import UUID

from msgspec import UNSET, UnsetType

from billfold.events.schemas import Subscription
from billfold.events.webhooks import routes
from billfold.events.webhooks.routes import ALL, ONE, TAG, WRITES
from billfold.events.webhooks.schemas import ChangedSubscription, CustomerKinds, NewSubscription
from billfold.http.customer_api.member import CustomerCaller
from billfold.http.operations import patch, post
from billfold.ledger.bank import Bank


class CreateSubscription(NewSubscription, forbid_unknown_fields=True, kw_only=True):
    """Where to send which types of events. Without a retry policy there is one attempt."""

    events: CustomerKinds


class UpdateSubscription(ChangedSubscription, forbid_unknown_fields=True, kw_only=True):
    """What to change; a field that is left out stays as it is. `retry_policy` null removes the policy."""

    events: CustomerKinds | UnsetType = UNSET


@post(ALL, WRITES, tag=TAG)
async def create_subscription(caller: CustomerCaller, bank: Bank, data: CreateSubscription) -> Subscription:
    """Create a subscription.

    It receives the events of its types that are raised from now on.
    """
    return await routes.create_subscription(caller, bank, data)


@patch(ONE, WRITES, tag=TAG, status=202)
async def update_subscription(
    caller: CustomerCaller, bank: Bank, subscription_id: UUID, data: UpdateSubscription
) -> Subscription:
    """Update a subscription.

    A new secret signs at once; for 24 hours the old one signs as well. Events raised while a
    subscription is disabled are not delivered later, unless `replay-missing` requests it.
    """
    return await routes.update_subscription(caller, bank, subscription_id, data)
