"""Subscriptions: created, listed, changed and deleted by their owner only."""

from datetime import timedelta

import pytest
from tests.events.test_sequencer import VAULT, subscribe
from tests.support.events import NOW, OTHER_PARTNER, PARTNER, SECRET, add_customer, raise_event

from billfold.events import sequencer
from billfold.events.schemas import Subscriber
from billfold.events.webhooks import attempts, redelivery, store, subscriptions
from billfold.events.webhooks.store import RetryPolicy
from billfold.events.webhooks.subscriptions import ChangedSubscription
from billfold.platform import ids
from billfold.platform.errors import NotFound

OWNER = Subscriber(PARTNER)
LISTED = store.SUBSCRIPTIONS[OWNER.level]
POLICY = RetryPolicy(
    retry_on_status_codes=[502],
    backoff_coefficient=1.5,
    maximum_attempts=5,
    initial_interval_seconds=30,
    maximum_interval_seconds=300,
)


async def update(conn, subscription_id, *, now=NOW, **changes):
    return await subscriptions.update_subscription(
        conn, VAULT, OWNER, subscription_id=subscription_id, changes=ChangedSubscription(**changes), now=now
    )


async def secrets_of(conn, subscription_id, now):
    """Return the secrets with which a worker signs at an instant."""
    worker_no = await attempts.register_worker(conn, now)
    await conn.execute("UPDATE subscription_queue SET worker_no = $1", worker_no)
    lane = await attempts.read_queue(conn, VAULT, subscription_id, worker_no=worker_no, now=now)
    assert lane is not None
    return lane.secrets


async def test_a_subscription_secret_is_stored_encrypted(conn):
    await subscribe(conn, OWNER)
    assert SECRET.encode() not in await conn.fetchval("SELECT sealed FROM subscription_secret")


async def test_operations_on_a_foreign_subscription_raise_not_found(conn):
    anna = await add_customer(conn)
    ours, annas = (await subscribe(conn, OWNER), await subscribe(conn, Subscriber(PARTNER, anna)))
    for owner, foreign in (
        (OWNER, annas),
        (Subscriber(PARTNER, anna), ours),
        (Subscriber(OTHER_PARTNER), ours),
        (Subscriber(PARTNER, ids.new()), annas),
        (OWNER, ids.new()),
    ):
        for attempt in (
            store.get_subscription(conn, owner, foreign),
            subscriptions.delete_subscription(conn, owner, foreign, now=NOW),
            subscriptions.update_subscription(
                conn, VAULT, owner, subscription_id=foreign, changes=ChangedSubscription(), now=NOW
            ),
            redelivery.resend(conn, owner, foreign, event_id=ids.new(), now=NOW),
            redelivery.redeliver_failed(conn, owner, foreign, since=NOW, now=NOW),
            redelivery.replay_missing(conn, owner, foreign, since=NOW, now=NOW),
        ):
            with pytest.raises(NotFound):
                await attempt


async def test_the_previous_subscription_secret_stays_valid_for_a_day(conn):
    wants = await subscribe(conn, OWNER)
    await update(conn, wants, shared_secret="the second secret")
    second_at = NOW + timedelta(hours=1)
    assert await secrets_of(conn, wants, NOW) == ("the second secret", SECRET)
    await update(conn, wants, shared_secret="the third secret !", now=second_at)
    assert await secrets_of(conn, wants, second_at) == ("the third secret !", "the second secret")
    day_after = second_at + timedelta(hours=24, seconds=1)
    assert await secrets_of(conn, wants, day_after) == ("the third secret !",)


async def test_deleting_a_subscription_deletes_its_secret_and_queue(conn):
    wants = await subscribe(conn, OWNER)
    await raise_event(conn, await add_customer(conn))
    await sequencer.sequence_events(conn, now=NOW)
    await subscriptions.delete_subscription(conn, OWNER, wants, now=NOW)
    with pytest.raises(NotFound):
        await store.get_subscription(conn, OWNER, wants)
    assert await LISTED.rows(conn, OWNER.key, limit=30) == []
    worker_no = await attempts.register_worker(conn, NOW)
    assert await attempts.claim_queues(conn, worker_no, NOW, failing=False, limit=9, per_subscriber=9) == []
    assert await conn.fetchval("SELECT count(*) FROM subscription_secret") == 0


async def test_enabling_a_subscription_makes_its_queued_deliveries_due(conn):
    wants = await subscribe(conn, OWNER)
    await raise_event(conn, await add_customer(conn))
    await sequencer.sequence_events(conn, now=NOW)
    worker_no = await attempts.register_worker(conn, NOW)
    await update(conn, wants, status="disabled")
    assert await attempts.claim_queues(conn, worker_no, NOW, failing=False, limit=9, per_subscriber=9) == []
    await update(conn, wants, status="enabled")
    assert await attempts.claim_queues(conn, worker_no, NOW, failing=False, limit=9, per_subscriber=9) == [wants]
