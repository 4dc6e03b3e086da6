"""Operations on webhook subscriptions and their deliveries."""

from contextlib import suppress
from dataclasses import replace
from uuid import UUID

import msgspec
from asyncpg import UniqueViolationError
from msgspec import UNSET

from billfold.audit.record import audited_by
from billfold.events.kinds import CUSTOMER_KINDS, KINDS, PARTNER_KINDS
from billfold.events.schemas import DeliveryAttempt, Redelivery, unknown_event_type_error
from billfold.events.sequencer import sequence_events
from billfold.events.webhooks import http_client, redelivery, rules, store, subscriptions
from billfold.events.webhooks.signature import secret_errors
from billfold.events.webhooks.store import EventSimulation, Subscription
from billfold.events.webhooks.subscriptions import (
    ChangedSubscription,
    NewSubscription,
    body_for,
    subscriber_of,
)
from billfold.http.operations import SIGNED, delete, get, patch, post, with_scope
from billfold.http.parameters import ListQuery, page_of
from billfold.http.schemas import CursorList
from billfold.identity.partners.caller import Caller
from billfold.ledger.bank import Bank
from billfold.oauth.caller import AnyCaller
from billfold.platform.errors import FieldError, InvalidInput, NotFound, Refused
from billfold.platform.settings.validation import variable_name

_TAG = "subscriptions"
_ALL = "/api/v1/subscriptions/"
_ONE = f"{_ALL}{{subscription_id}}/"
READS = with_scope("subscriptions.read", "subscriptions")
WRITES = with_scope("subscriptions.write", "subscriptions")
_REFUSES = ("subscription-disabled",)
LOCAL_URL_HINT = (
    "for a program on this machine run `billfold listen --forward-to PORT`, or start the sandbox "
    f"with {variable_name('webhook_allowed_networks')}=127.0.0.0/8"
)


@post(_ALL, tag=_TAG, takes=body_for(NewSubscription, "CreateSubscription", PARTNER_KINDS))
@post(_ALL, WRITES, tag=_TAG, takes=body_for(NewSubscription, "CreateSubscription", CUSTOMER_KINDS))
async def create_subscription(caller: AnyCaller, bank: Bank, data: NewSubscription) -> Subscription:
    """Create a subscription.

    It receives the events of its types that are raised from now on.
    """
    await _check_subscription(bank, data)
    subscriber, subscription_id = subscriber_of(caller), caller.new_resource_id(bank.seed)
    with suppress(NotFound):
        # The response to the first request was lost on its way.
        return await store.get_subscription(bank.pool, subscriber, subscription_id)
    details = {"url": data.url, "events": list(data.events)}
    try:
        async with audited_by(
            caller, bank, _audit_log_owner(caller), "subscription.created", resource_id=subscription_id, details=details
        ) as audited:
            created = await subscriptions.create_subscription(
                audited.conn,
                bank.vault,
                subscriber,
                url=data.url,
                events=data.events,
                shared_secret=data.shared_secret,
                description=data.description,
                retry_policy=data.retry_policy,
                subscription_id=subscription_id,
                now=caller.wall,
            )
    except UniqueViolationError:
        # Under this key a subscription was created and deleted since.
        raise Refused("idempotency-key-reused", "This key has made another one.") from None
    return created


@patch(_ONE, tag=_TAG, takes=body_for(ChangedSubscription, "UpdateSubscription", PARTNER_KINDS, UNSET))
@patch(
    _ONE, WRITES, tag=_TAG, status=202, takes=body_for(ChangedSubscription, "UpdateSubscription", CUSTOMER_KINDS, UNSET)
)
async def update_subscription(
    caller: AnyCaller, bank: Bank, subscription_id: UUID, data: ChangedSubscription
) -> Subscription:
    """Update a subscription.

    A new secret signs at once; for 24 hours the old one signs as well. Events raised while a
    subscription is disabled are not delivered later, unless `replay-missing` requests it.
    """
    subscriber = subscriber_of(caller)
    await store.get_subscription(bank.pool, subscriber, subscription_id)
    await _check_subscription(bank, data)
    details = {
        name: value if name != "shared_secret" else "changed" for name, value in msgspec.to_builtins(data).items()
    }
    async with audited_by(
        caller, bank, _audit_log_owner(caller), "subscription.updated", resource_id=subscription_id, details=details
    ) as audited:
        return await subscriptions.update_subscription(
            audited.conn,
            bank.vault,
            subscriber,
            subscription_id=subscription_id,
            changes=data,
            now=caller.wall,
        )


@get(_ALL, SIGNED, READS, tag=_TAG)
async def list_subscriptions(caller: AnyCaller, bank: Bank, wanted: ListQuery) -> CursorList[Subscription]:
    """List subscriptions, newest first."""
    subscriber = subscriber_of(caller)
    page = await wanted.read(bank, store.SUBSCRIPTIONS[subscriber.level], subscriber.key, scope="subscriptions")
    return page_of(page, page.items)


@get(_ONE, SIGNED, READS, tag=_TAG)
async def get_subscription(caller: AnyCaller, bank: Bank, subscription_id: UUID) -> Subscription:
    """Get a subscription.

    Its shared secret is never shown.
    """
    return await store.get_subscription(bank.pool, subscriber_of(caller), subscription_id)


@delete(_ONE, SIGNED, WRITES, tag=_TAG, status=202)
async def delete_subscription(caller: AnyCaller, bank: Bank, subscription_id: UUID) -> None:
    """Delete a subscription.

    No more events are delivered to it.
    """
    subscriber = subscriber_of(caller)
    await store.get_subscription(bank.pool, subscriber, subscription_id)
    async with audited_by(
        caller, bank, _audit_log_owner(caller), "subscription.deleted", resource_id=subscription_id
    ) as audited:
        await subscriptions.delete_subscription(audited.conn, subscriber, subscription_id, now=caller.wall)


@get(f"{_ONE}attempts/", SIGNED, READS, tag=_TAG)
async def list_delivery_attempts(
    caller: AnyCaller,
    bank: Bank,
    subscription_id: UUID,
    wanted: ListQuery,
    event_id: UUID | None = None,
) -> CursorList[DeliveryAttempt]:
    """List delivery attempts.

    Newest first; with `event_id` those of one event.
    """
    subscriber = subscriber_of(caller)
    await store.get_subscription(bank.pool, subscriber, subscription_id)
    page = await wanted.read(bank, store.ATTEMPTS, subscription_id, event_id, scope="attempts")
    return page_of(page, page.items)


@post(f"{_ONE}resend/", SIGNED, WRITES, tag=_TAG, status=202, refuses=_REFUSES)
async def resend_event(caller: AnyCaller, bank: Bank, subscription_id: UUID, data: subscriptions.Resend) -> Redelivery:
    """Resend an event.

    It is delivered again, whatever the result of earlier attempts.
    """
    await redelivery.resend(bank.pool, subscriber_of(caller), subscription_id, event_id=data.event_id, now=caller.wall)
    return Redelivery(count=1)


@post(f"{_ONE}recover/", SIGNED, WRITES, tag=_TAG, status=202, refuses=_REFUSES)
async def recover_events(caller: AnyCaller, bank: Bank, subscription_id: UUID, data: subscriptions.Since) -> Redelivery:
    """Redeliver failed events.

    Every event whose delivery failed since a time of the wall clock is delivered again.
    """
    count = await redelivery.redeliver_failed(
        bank.pool, subscriber_of(caller), subscription_id, since=data.instant(), now=caller.wall
    )
    return Redelivery(count=count)


@post(f"{_ONE}replay-missing/", SIGNED, WRITES, tag=_TAG, status=202, refuses=_REFUSES)
async def replay_missing_events(
    caller: AnyCaller, bank: Bank, subscription_id: UUID, data: subscriptions.Since
) -> Redelivery:
    """Deliver missing events.

    Every event with a later `timestamp` that was never queued for this subscription is delivered: those
    raised before it was created, or while it was disabled or subscribed to other types.
    """
    await sequence_events(bank.pool, now=caller.wall)
    count = await redelivery.replay_missing(
        bank.pool, subscriber_of(caller), subscription_id, since=data.instant(), now=caller.wall
    )
    return Redelivery(count=count)


@post(f"{_ONE}send-example/", SIGNED, WRITES, tag=_TAG, status=202, refuses=_REFUSES)
async def send_example_event(
    caller: AnyCaller, bank: Bank, subscription_id: UUID, data: subscriptions.Example
) -> Redelivery:
    """Send an example event.

    It shows whether the receiver accepts deliveries. Nothing happened in the bank.
    """
    subscriber = subscriber_of(caller)
    row = await store.get_subscription(bank.pool, subscriber, subscription_id)
    kind = data.event_type or row.events[0]
    if kind not in subscriber.kinds:
        raise InvalidInput([unknown_event_type_error("body", "event_type")])
    example = EventSimulation(
        event_id=caller.new_resource_id(bank.seed),
        kind=kind,
        raised_at=caller.now,
        payload=msgspec.json.encode(KINDS[kind].example).decode(),
    )
    await redelivery.send_example(bank.pool, subscriber, subscription_id, event=example, now=caller.wall)
    return Redelivery(count=1)


async def _check_subscription(bank: Bank, data: NewSubscription | ChangedSubscription) -> None:
    """Raise InvalidInput with all errors in url, secret and policy."""
    wrong: list[FieldError] = []
    try:
        if data.url is not UNSET:
            await http_client.check_url(data.url, bank.settings)
    except InvalidInput as refused:
        wrong += [_with_local_hint(bank, each) for each in refused.errors]
    if data.shared_secret is not UNSET:
        wrong += secret_errors(data.shared_secret)
    if isinstance(data.retry_policy, subscriptions.Retries):
        wrong += rules.policy_errors(data.retry_policy)
    if wrong:
        raise InvalidInput(wrong)


def _with_local_hint(bank: Bank, error: FieldError) -> FieldError:
    """Return the error in a url; in a sandbox with the way to reach a client on this machine."""
    if bank.settings.is_production:
        return error
    return replace(error, msg=f"{error.msg}; {LOCAL_URL_HINT}")


def _audit_log_owner(caller: AnyCaller) -> UUID:
    """Return the owner of the audit log that records a change: the customer, or the partner."""
    return caller.own_customer_id if isinstance(caller, Caller) else caller.customer_id
