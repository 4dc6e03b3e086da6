"""The courier against receivers of every kind: all they are owed, in order, and no more."""

import asyncio
import json
import subprocess
from datetime import timedelta

import pytest
import standardwebhooks
from tests.node.runtime import node_command
from tests.support.events import (
    BOTH,
    LOOPBACK,
    NOW,
    OWNER,
    PARTNER,
    SECRET,
    VAULT,
    Town,
    add_customer,
    always,
    answer,
    receiving,
)
from typing_extensions import override

from billfold.events import sequencer
from billfold.events.schemas import Subscriber
from billfold.events.webhooks import attempts, http_client, redelivery, store, subscriptions
from billfold.events.webhooks.http_client import GuardedWebhookClient
from billfold.events.webhooks.store import EventSimulation, RetryPolicy
from billfold.events.webhooks.subscriptions import ChangedSubscription
from billfold.events.webhooks.worker import WebhookDispatcher
from billfold.platform import ids
from billfold.platform.clock import wall_now
from billfold.platform.database.background_work import list_failed
from billfold.platform.database.pool import create_pool

POLICY = RetryPolicy(
    retry_on_status_codes=[],
    backoff_coefficient=2,
    maximum_attempts=3,
    initial_interval_seconds=30,
    maximum_interval_seconds=300,
)


@pytest.fixture
async def town(database_dsn):
    pool = await create_pool(database_dsn, min_size=2)
    yield Town(pool, await add_customer(pool))
    await pool.close()


async def test_webhook_events_arrive_in_order_over_one_connection(town):
    async with receiving() as receiver:
        wants = await town.subscribe(receiver)
        happened = await town.happen(120)
        await town.work()
        assert [each.event["event_id"] for each in receiver.requests] == happened
        assert [each.event["sequence"] for each in receiver.requests] == list(range(1, 121))
        assert [each.event["previous_sequence"] for each in receiver.requests] == list(range(120))
        assert receiver.connections == 1
    assert await town.states(wants) == ["delivered"] * 120
    assert set(await town.attempts(wants)) == {(200, "OK")}


async def test_a_failing_delivery_queue_does_not_block_other_queues(town):
    async with receiving() as good, receiving() as bad:
        wants, broken = await town.subscribe(good), await town.subscribe(bad)
        set_secret = "UPDATE subscription_secret SET sealed = $2 WHERE subscription_id = $1"
        sealed = await town.pool.fetchval("SELECT sealed FROM subscription_secret WHERE subscription_id = $1", broken)
        await town.pool.execute(set_secret, broken, b"broken")
        await town.happen(3)
        await town.work()
        assert await town.states(wants) == ["delivered"] * 3
        assert [(each.kind, each.item) for each in await list_failed(town.pool)] == [("webhook queue", str(broken))]
        await town.pool.execute(set_secret, broken, sealed)
        town.now += timedelta(minutes=1)
        await town.work()
        assert (await town.states(broken), await list_failed(town.pool)) == (["delivered"] * 3, [])


async def test_a_delivery_is_verified_by_third_party_webhook_libraries(town):
    town.now = wall_now()
    secret = "whsec_" + "c2VjcmV0" * 4
    async with receiving() as plain, receiving() as prefixed:
        await town.subscribe(plain)
        rotated = await town.subscribe(prefixed, shared_secret="an old secret, soon replaced")
        changes = ChangedSubscription(shared_secret=secret)
        await subscriptions.update_subscription(
            town.pool, VAULT, OWNER, subscription_id=rotated, changes=changes, now=town.now
        )
        await town.happen()
        await town.work()
    one, two = plain.requests[0], prefixed.requests[0]
    assert two.headers["webhook-signature"].count("v1,") == 2
    for key, got in ((SECRET.encode(), one), (secret, two), (b"an old secret, soon replaced", two)):
        told = standardwebhooks.Webhook(key).verify(got.body, got.headers)
        assert told["event_type"] == BOTH
        with pytest.raises(standardwebhooks.WebhookVerificationError):
            standardwebhooks.Webhook(key).verify(got.body + b" ", got.headers)
    old = str(int(two.headers["webhook-timestamp"]) - 301)
    assert verified_by_node(
        [SECRET, one.headers, one.body.decode(), True],
        [secret, two.headers, two.body.decode(), False],
        [secret, two.headers, two.body.decode() + " ", False],
        [secret, two.headers | {"webhook-timestamp": old}, two.body.decode(), False],
    ) == ["genuine", "genuine", "No matching signature found", "Message timestamp too old"]


def verified_by_node(*deliveries):
    ran = subprocess.run(
        node_command("verify_webhook.cjs"),
        input="\n".join(map(json.dumps, deliveries)),
        capture_output=True,
        text=True,
        check=True,
    )
    return ran.stdout.splitlines()


async def test_a_delivery_answered_with_500_is_retried_while_later_events_are_delivered(town):
    async with receiving() as receiver:
        wants = await town.subscribe(receiver, retry_policy=POLICY)
        first, second, third = await town.happen(3)

        async def script(request):
            return answer(500 if request.id == first else 204)

        receiver.script = script
        await town.work()
        assert [each.id for each in receiver.requests] == [first, second, third]
        assert await town.states(wants) == ["pending", "delivered", "delivered"]
        for seconds in (23, 15, 300):
            town.now += timedelta(seconds=seconds)
            await town.work()
        assert [each.id for each in receiver.requests[3:]] == [first, first]
        assert len({each.body for each in receiver.requests if each.id == first}) == 1
    assert await town.states(wants) == ["failed", "delivered", "delivered"]
    attempts = await town.attempts(wants)
    assert sorted(attempts) == [(204, "No Content")] * 2 + [(500, "Internal Server Error")] * 3


async def test_a_failed_delivery_without_a_retry_policy_is_not_retried(town):
    async def disconnect(_):
        return None

    for script, attempt in (
        (always(answer(301, "location: http://127.0.0.1/")), (301, "a redirect, which is not followed")),
        (always(b"nonsense\r\n\r\n"), (0, "an answer that is not HTTP")),
        (disconnect, (0, "hung up without an answer")),
    ):
        async with receiving(script) as receiver:
            wants = await town.subscribe(receiver)
            await town.happen()
            await town.work()
            assert await town.attempts(wants) == [attempt]
            assert await town.states(wants) == ["failed"]
            await subscriptions.delete_subscription(town.pool, OWNER, wants, now=town.now)


async def test_a_410_response_disables_the_subscription(town):
    async with receiving(always(answer(410))) as receiver:
        wants = await town.subscribe(receiver, retry_policy=POLICY)
        await town.happen(3)
        await town.work()
        assert len(receiver.requests) == 1
    row = await store.get_subscription(town.pool, OWNER, wants)
    assert row.status == "disabled"
    assert row.disabled_because is not None
    assert [(each.subscription_id, each.ended) for each in town.failing] == [(wants, True)]


async def test_retry_after_delays_all_deliveries_to_the_receiver(town):
    async with receiving(always(answer(429, "Retry-After: 60"))) as receiver:
        wants = await town.subscribe(receiver, retry_policy=POLICY)
        await town.happen(3)
        await town.work()
        receiver.script = None
        town.now += timedelta(seconds=59)
        await town.work()
        assert len(receiver.requests) == 1
        town.now += timedelta(seconds=1)
        await town.work()
        assert len(receiver.requests) == 4
    assert await town.states(wants) == ["delivered"] * 3


async def test_a_hanging_receiver_does_not_delay_other_receivers(town, monkeypatch):
    monkeypatch.setattr(http_client, "ANSWER_SECONDS", 1.0)

    async def never(_):
        await asyncio.sleep(60)

    async with receiving(never) as hanging, receiving() as well:
        for _ in range(5):
            await town.subscribe(hanging)
        await town.subscribe(well)
        await town.happen(60)
        async with asyncio.timeout(10), town.courier(lanes_max=24):
            await well.count(60)
            assert len(hanging.requests) == 5
            for _ in range(5):
                await hanging.count(len(hanging.requests) + 1)
            await town.happen(30)
            await well.count(90, seconds=0.9)


async def test_a_subscriber_with_slow_receivers_does_not_occupy_all_lanes(town):
    async def slowly(_):
        await asyncio.sleep(0.5)
        return answer()

    async with receiving(slowly) as slow, receiving() as well:
        for _ in range(9):
            await town.subscribe(slow)
        await town.happen(60)
        async with town.courier(lanes_max=8):
            await slow.count(8)
            await town.subscribe(well, Subscriber(PARTNER, town.customer_id))
            await town.happen(60)
            await well.count(60, seconds=5)
        assert len(slow.requests) < 9 * 60


async def test_a_repeatedly_failing_subscription_is_reported_once(town):
    async with receiving(always(answer(500))) as receiver:
        wants = await town.subscribe(receiver)
        await town.happen(15)
        await town.work()
    assert [(each.subscription_id, each.ended) for each in town.failing] == [(wants, False)]


async def test_a_disabled_or_deleted_subscription_receives_no_further_deliveries(town):
    for ending in ("disable", "delete"):
        async with receiving() as receiver:
            wants = await town.subscribe(receiver)
            turned = asyncio.Event()

            async def script(_, wants=wants, turned=turned, ending=ending):
                if ending == "disable":
                    await subscriptions.update_subscription(
                        town.pool,
                        VAULT,
                        OWNER,
                        subscription_id=wants,
                        changes=ChangedSubscription(status="disabled"),
                        now=town.now,
                    )
                else:
                    await subscriptions.delete_subscription(town.pool, OWNER, wants, now=town.now)
                turned.set()
                await asyncio.sleep(1.1)
                return answer()

            receiver.script = script
            await town.happen(3)
            await town.work()
            assert turned.is_set()
            assert len(receiver.requests) == 1


async def test_concurrent_dispatchers_never_call_one_receiver_at_the_same_time(town):
    busy = 0

    async def script(_):
        nonlocal busy
        busy += 1
        assert busy == 1
        await asyncio.sleep(0.001)
        busy -= 1
        return answer()

    async with receiving(script) as receiver:
        wants = await town.subscribe(receiver)
        async with town.courier(), town.courier(), town.courier():
            happened = []
            for _ in range(20):
                happened += await town.happen(3)
                await asyncio.sleep(0.005)
            await receiver.count(60)
            await town.quiet()
        assert [each.id for each in receiver.requests] == happened
    assert await town.states(wants) == ["delivered"] * 60


async def test_deliveries_of_a_dead_dispatcher_are_taken_over_by_a_live_one(town, database_dsn):
    async with receiving() as receiver:
        wants = await town.subscribe(receiver)
        happened = await town.happen(3)
        await sequencer.sequence_events(town.pool, now=town.now)
        lost = await create_pool(database_dsn, min_size=1)
        async with lost.acquire() as conn:
            dead = await attempts.register_worker(conn, town.now)
            assert await attempts.claim_queues(conn, dead, town.now, failing=False, limit=1, per_subscriber=1) == [
                wants
            ]
            async with town.courier():
                await asyncio.sleep(0.1)
                assert receiver.requests == [], "it is alive"
            conn.terminate()
        await lost.close()
        async with town.courier():
            await receiver.count(3)
        assert [each.id for each in receiver.requests] == happened


async def test_a_dispatcher_expires_when_its_heartbeat_stops(town):
    async with receiving() as receiver, town.pool.acquire() as conn:
        wants = await town.subscribe(receiver)
        await town.happen()
        await sequencer.sequence_events(town.pool, now=town.now)
        silent = await attempts.register_worker(conn, town.now)
        assert await attempts.claim_queues(conn, silent, town.now, failing=False, limit=1, per_subscriber=1) == [wants]
        town.now += timedelta(seconds=31)
        async with town.courier():
            await receiver.count(1)
        assert not await attempts.record_heartbeat(conn, silent, town.now)


async def test_an_expired_dispatcher_registers_again(town):
    async with receiving() as receiver:
        await town.subscribe(receiver)
        async with town.courier():
            while not await town.pool.fetchval("SELECT count(*) FROM webhook_worker"):
                await asyncio.sleep(0.01)
            await town.pool.execute("DELETE FROM webhook_worker")
            await town.happen()
            await receiver.count(1)
            await town.quiet()
    assert await town.pool.fetchval("SELECT count(*) FROM webhook_worker") == 0


async def test_a_resent_event_is_delivered_again(town):
    async with receiving() as receiver:
        wants = await town.subscribe(receiver)
        [event_id] = await town.happen()
        await town.work()
        await redelivery.resend(town.pool, OWNER, wants, event_id=event_id, now=town.now)
        await town.work()
        assert [each.id for each in receiver.requests] == [event_id] * 2
    assert await town.attempts(wants) == [(200, "OK")] * 2


async def test_a_simulated_event_is_delivered_like_a_real_one(town):
    async with receiving() as receiver:
        await town.subscribe(receiver)
        event = EventSimulation(event_id=ids.new(), kind=BOTH, raised_at=NOW, payload='{"b": [2]}')
        assert await redelivery.simulate_event(town.pool, OWNER, event, now=town.now) == 1
        await town.work()
        told = receiver.requests[0].event
    assert told["payload"] == {"b": [2]}
    assert (told["event_id"], told["sequence"]) == (str(event.event_id), None)


class Stumbling(GuardedWebhookClient):
    """A courier with an unexpected error at one of its receivers."""

    def __init__(self, at):
        super().__init__(allowed=LOOPBACK)
        self.at = at

    @override
    def connection(self, url):
        if url == self.at:
            raise LookupError(url)
        return super().connection(url)


async def test_a_failed_delivery_lane_does_not_stop_other_lanes(town):
    async with receiving() as good, receiving() as bad:
        broken = await town.subscribe(bad)
        well = await town.subscribe(good)
        await town.happen(3)
        await sequencer.sequence_events(town.pool, now=town.now)
        stop = asyncio.Event()
        courier = WebhookDispatcher(town.pool, VAULT, Stumbling(bad.url), clock=lambda: town.now, pause_seconds=0.01)
        work = asyncio.create_task(courier.run(stop))
        async with asyncio.timeout(10):
            while await town.states(well) != ["delivered"] * 3:
                await asyncio.sleep(0.01)
        await town.happen()
        async with asyncio.timeout(10):
            while await town.states(well) != ["delivered"] * 4:
                await asyncio.sleep(0.01)
        stop.set()
        await work

    assert await town.states(broken) == ["pending"] * 4
    assert await town.pool.fetchval("SELECT count(worker_no) FROM subscription_queue") == 0
