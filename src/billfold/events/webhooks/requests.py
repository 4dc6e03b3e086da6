"""What is said of a subscription when it is made or changed, and how its deliveries are mended."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias
from uuid import UUID

import msgspec
from asyncpg import UniqueViolationError
from msgspec import UNSET, UnsetType

from billfold.audit import record as audit_record
from billfold.audit.record import AuditedAction
from billfold.events.kinds import CUSTOMER_KINDS, KINDS, PARTNER_KINDS
from billfold.events.pages import Subscriber
from billfold.events.schemas import DeliveryAttempt, Redelivery, Subscription, render_attempt, render_subscription
from billfold.events.webhooks import endpoints, redelivery, sequencer, subscriptions
from billfold.events.webhooks import rules as webhook_rules
from billfold.events.webhooks import store as webhook_store
from billfold.events.webhooks.types import EventSimulation, RetryPolicy, SubscriptionChanges
from billfold.http.caller import Call
from billfold.http.json_body import instant_in_body
from billfold.http.list_params import ListQuery, page_of
from billfold.http.schemas.pages import CursorList
from billfold.ledger.bank import Bank
from billfold.platform.errors import FieldError, InvalidInput, NotFound, Refused
from billfold.platform.settings.settings import variable_name

URL_CHARS_MAX, SECRET_CHARS_MAX, DESCRIPTION_CHARS_MAX = 2083, 256, 500
SECONDS_MIN, SECONDS_MAX = 30, 86_400
LOCAL_URL_HINT = (
    "for a program on this machine run `billfold listen --forward-to PORT`, or start the sandbox "
    f"with {variable_name('webhook_allowed_networks')}=127.0.0.0/8"
)
WEAK_SECRET_WARNING = "shared_secret has fewer than 24 characters; use 32 or more that are random."  # noqa: S105 - a name, not a secret

Url = Annotated[
    str,
    msgspec.Meta(
        min_length=1,
        max_length=URL_CHARS_MAX,
        extra_json_schema={"format": "uri"},
        description="Where events are sent: https, on the internet, without user name or password.",
    ),
]
if TYPE_CHECKING:
    PartnerKind: TypeAlias = str
    CustomerKind: TypeAlias = str
else:
    PartnerKind = Literal[PARTNER_KINDS]
    CustomerKind = Literal[CUSTOMER_KINDS]
_SEVERAL = msgspec.Meta(min_length=1, max_length=100, description="Kinds of `/api/v1/events/types/`.")
PartnerKinds = Annotated[list[PartnerKind], _SEVERAL]
CustomerKinds = Annotated[list[CustomerKind], _SEVERAL]
Secret = Annotated[
    str,
    msgspec.Meta(
        min_length=16,
        max_length=SECRET_CHARS_MAX,
        description="What deliveries are signed with. After `whsec_` it is base64.",
    ),
]
Description = Annotated[str, msgspec.Meta(max_length=DESCRIPTION_CHARS_MAX)]
Code = Annotated[int, msgspec.Meta(ge=0, le=599)]
Interval = Annotated[float, msgspec.Meta(ge=SECONDS_MIN, le=SECONDS_MAX)]


class Retries(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """When a delivery that failed is tried again: all five fields belong to it.

    No status codes mean whatever is no 2xx, and no answer; among codes 0 stands for no answer.
    `maximum_attempts` counts the first.
    """

    retry_on_status_codes: Annotated[list[Code], msgspec.Meta(max_length=100)]
    backoff_coefficient: Annotated[float, msgspec.Meta(ge=1, le=1000)]
    maximum_attempts: Annotated[int, msgspec.Meta(ge=1, le=20)]
    initial_interval_seconds: Interval
    maximum_interval_seconds: Interval

    def policy(self) -> RetryPolicy:
        """Return it as a policy."""
        return msgspec.convert(msgspec.structs.asdict(self), RetryPolicy)


class NewSubscription(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Where to send which kinds of events. Without a retry policy there is one attempt."""

    url: Url
    events: list[str]
    shared_secret: Secret
    description: Description = ""
    retry_policy: Retries | None = None


class ChangedSubscription(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """What is to change; what is left out stays. `retry_policy` null takes the policy away."""

    url: Url | UnsetType = UNSET
    events: list[str] | UnsetType = UNSET
    shared_secret: Secret | UnsetType = UNSET
    description: Description | UnsetType = UNSET
    retry_policy: Retries | UnsetType | None = UNSET
    status: Literal["enabled", "disabled"] | UnsetType = UNSET


class Resend(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Which event is to be delivered once more."""

    event_id: UUID


class Since(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """From when on deliveries are mended. In the body, for a query is not signed."""

    since: datetime

    def instant(self) -> datetime:
        """Return it in UTC. Raises InvalidInput without an offset."""
        return instant_in_body("since", self.since)


class Example(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Of which kind an example is to be sent; of the first one subscribed to when left out."""

    event_type: str | None = None


async def create(call: Call, bank: Bank, subscriber: Subscriber, data: NewSubscription) -> Subscription:
    """Subscribe, once per key. Raises InvalidInput for url, secret and policy."""
    await check(bank, data)
    new_resource_id = call.new_resource_id(bank.seed)
    with suppress(NotFound):
        # The answer to the first request was lost on its way.
        return render_subscription(await webhook_store.get_subscription(bank.pool, subscriber.owner, new_resource_id))
    audit_details = {"url": data.url, "events": list(data.events)}
    try:
        async with _audited(call, bank, subscriber, "created", new_resource_id, audit_details) as audited:
            created = await subscriptions.create_subscription(
                audited.conn,
                bank.vault,
                subscriber.owner,
                url=data.url,
                events=data.events,
                shared_secret=data.shared_secret,
                description=data.description,
                retry_policy=None if data.retry_policy is None else data.retry_policy.policy(),
                subscription_id=new_resource_id,
                now=call.wall,
            )
    except UniqueViolationError:
        # Under this key a subscription was made, and deleted since.
        raise Refused("idempotency-key-reused", "This key has made another one.") from None
    return render_subscription(created, secret_warnings(data.shared_secret))


async def change(
    call: Call, bank: Bank, subscriber: Subscriber, subscription_id: UUID, data: ChangedSubscription
) -> Subscription:
    """Change a subscription. Raises NotFound, and InvalidInput as `create` does."""
    await webhook_store.get_subscription(bank.pool, subscriber.owner, subscription_id)
    await check(bank, data)
    changes = _changes(data)
    audit_details = {
        name: value if name != "shared_secret" else "changed" for name, value in msgspec.to_builtins(data).items()
    }
    async with _audited(call, bank, subscriber, "updated", subscription_id, audit_details) as audited:
        changed = await subscriptions.update_subscription(
            audited.conn, bank.vault, subscriber.owner, subscription_id, changes, now=call.wall
        )
    return render_subscription(changed, secret_warnings(data.shared_secret))


async def end(call: Call, bank: Bank, subscriber: Subscriber, subscription_id: UUID) -> None:
    """Delete a subscription. Raises NotFound."""
    await webhook_store.get_subscription(bank.pool, subscriber.owner, subscription_id)
    async with _audited(call, bank, subscriber, "deleted", subscription_id, {}) as audited:
        await subscriptions.delete_subscription(audited.conn, subscriber.owner, subscription_id, now=call.wall)


async def read(bank: Bank, subscriber: Subscriber, subscription_id: UUID) -> Subscription:
    """Return a subscription. Raises NotFound."""
    return render_subscription(await webhook_store.get_subscription(bank.pool, subscriber.owner, subscription_id))


async def subscription_page(bank: Bank, subscriber: Subscriber, wanted: ListQuery) -> CursorList[Subscription]:
    """Return one page of subscriptions, newest first."""
    scope = f"subscriptions:{subscriber.name}"
    position = wanted.position(bank.pager, scope, {})
    rows = await webhook_store.list_subscriptions(bank.pool, subscriber.owner, limit=wanted.limit, position=position)
    page = bank.pager.page(scope, {}, rows, limit=wanted.limit, start=position, sort_key_of=webhook_store.sort_key_of)
    return page_of(page, [render_subscription(row) for row in page.items])


async def attempt_page(
    bank: Bank, subscriber: Subscriber, subscription_id: UUID, wanted: ListQuery, event_id: UUID | None
) -> CursorList[DeliveryAttempt]:
    """Return one page of what was attempted for a subscription, newest first. Raises NotFound."""
    scope, filters = f"attempts:{subscription_id}", {"of": str(event_id)}
    position = wanted.position(bank.pager, scope, filters)
    rows = await webhook_store.list_attempts(
        bank.pool, subscriber.owner, subscription_id, limit=wanted.limit, event_id=event_id, position=position
    )
    page = bank.pager.page(
        scope, filters, rows, limit=wanted.limit, start=position, sort_key_of=webhook_store.sort_key_of
    )
    return page_of(page, [render_attempt(row) for row in page.items])


async def resend(call: Call, bank: Bank, subscriber: Subscriber, subscription_id: UUID, data: Resend) -> Redelivery:
    """Deliver one event once more. Raises NotFound, `subscription-disabled`."""
    await redelivery.resend(bank.pool, subscriber.owner, subscription_id, data.event_id, now=call.wall)
    return Redelivery(count=1)


async def recover(call: Call, bank: Bank, subscriber: Subscriber, subscription_id: UUID, data: Since) -> Redelivery:
    """Deliver once more what failed since then. Raises NotFound, `subscription-disabled`."""
    count = await redelivery.redeliver_failed(
        bank.pool, subscriber.owner, subscription_id, data.instant(), now=call.wall
    )
    return Redelivery(count=count)


async def replay_missing(
    call: Call, bank: Bank, subscriber: Subscriber, subscription_id: UUID, data: Since
) -> Redelivery:
    """Deliver what was raised since then and never queued. Raises as `recover` does."""
    await sequencer.sequence_events(bank.pool, now=call.wall)
    count = await redelivery.replay_missing(bank.pool, subscriber.owner, subscription_id, data.instant(), now=call.wall)
    return Redelivery(count=count)


async def send_example(
    call: Call, bank: Bank, subscriber: Subscriber, subscription_id: UUID, data: Example | None
) -> Redelivery:
    """Deliver an example of a kind. Raises NotFound, `subscription-disabled`, InvalidInput."""
    row = await webhook_store.get_subscription(bank.pool, subscriber.owner, subscription_id)
    kind = row.events[0] if data is None or data.event_type is None else data.event_type
    if kind not in subscriber.kinds:
        raise InvalidInput([unknown_event_kind_error("body", "event_type")])
    example = EventSimulation(
        event_id=call.new_resource_id(bank.seed),
        kind=kind,
        raised_at=call.now,
        payload=msgspec.json.encode(KINDS[kind].example).decode(),
    )
    await redelivery.send_example(bank.pool, subscriber.owner, subscription_id, example, now=call.wall)
    return Redelivery(count=1)


async def check(bank: Bank, data: NewSubscription | ChangedSubscription) -> None:
    """Raise InvalidInput with everything that is wrong with url, secret and policy."""
    wrong: list[FieldError] = []
    try:
        if data.url is not UNSET:
            await endpoints.check_url(data.url, bank.settings)
    except InvalidInput as refused:
        wrong += [_with_local_hint(bank, each) for each in refused.errors]
    try:
        if data.shared_secret is not UNSET:
            webhook_rules.check_secret(data.shared_secret)
    except InvalidInput as refused:
        wrong += refused.errors
    try:
        if isinstance(data.retry_policy, Retries):
            webhook_rules.check_policy(data.retry_policy.policy())
    except InvalidInput as refused:
        wrong += refused.errors
    if wrong:
        raise InvalidInput(wrong)


def _with_local_hint(bank: Bank, error: FieldError) -> FieldError:
    """Return what is wrong with a url; in a sandbox with how to reach a program on this machine."""
    if bank.settings.is_production:
        return error
    return replace(error, msg=f"{error.msg}; {LOCAL_URL_HINT}")


def unknown_event_kind_error(*loc: str | int) -> FieldError:
    """Return the mistake of naming a kind that there is not, or not for this API."""
    return FieldError(loc, "is not a kind of /api/v1/events/types/", "enum")


def secret_warnings(secret: str | UnsetType) -> list[str]:
    """Return what is wrong with a secret that is accepted all the same."""
    return [WEAK_SECRET_WARNING] if secret is not UNSET and webhook_rules.is_weak_secret(secret) else []


def _audited(
    call: Call, bank: Bank, subscriber: Subscriber, verb: str, subscription_id: UUID, details: dict[str, Any]
) -> AbstractAsyncContextManager[AuditedAction]:
    """Lend a transaction whose deed stands in the audit log."""
    return audit_record.audited(
        bank.pool,
        bank.vault,
        subscriber.audited_id,
        call.origin,
        f"subscription.{verb}",
        resource=("subscription", subscription_id),
        details=details,
        now=call.wall,
    )


def _changes(data: ChangedSubscription) -> SubscriptionChanges:
    policy = data.retry_policy
    return SubscriptionChanges(
        url=data.url,
        description=data.description,
        events=UNSET if data.events is UNSET else tuple(data.events),
        shared_secret=data.shared_secret,
        retry_policy=policy.policy() if isinstance(policy, Retries) else policy,
        status=data.status,
    )
