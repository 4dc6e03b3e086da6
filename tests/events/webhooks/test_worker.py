"""The webhook dispatcher with receivers of every kind: each event arrives once and in order."""

import asyncio
import json
import subprocess
from datetime import timedelta

import pytest
import standardwebhooks
from tests.node.runtime import node_command
from tests.support.events import (
    BOTH,
    KEYS,
    LOOPBACK,
    OWNER,
    PARTNER,
    SECRET,
    VAULT,
    WebhookScenario,
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
from billfold.events.webhooks.store import RetryPolicy
from billfold.events.webhooks.subscriptions import ChangedSubscription
from billfold.events.webhooks.worker import WebhookDispatcher
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
async def scenario(database_dsn):
    pool = await create_pool(database_dsn, min_size=2)
    yield WebhookScenario(pool, await add_customer(pool))
    await pool.close()


async def test_webhook_events_arrive_in_order_over_one_connection(scenario):
    async with receiving() as receiver:
        wants = await scenario.subscribe(receiver)
        happened = await scenario.happen(120)
        await scenario.work()
        assert [each.event["event_id"] for each in receiver.requests] == happened
        assert [each.event["sequence"] for each in receiver.requests] == list(range(1, 121))
        assert [each.event["previous_sequence"] for each in receiver.requests] == list(range(120))
        assert receiver.connections == 1
    assert await scenario.states(wants) == ["delivered"] * 120
    assert set(await scenario.attempts(wants)) == {(200, "OK")}


async def test_a_failing_delivery_queue_does_not_block_other_queues(scenario):
    async with receiving() as good, receiving() as bad:
        wants, broken = await scenario.subscribe(good), await scenario.subscribe(bad)
        set_secret = "UPDATE subscription_secret SET sealed = $2 WHERE subscription_id = $1"
        sealed = await scenario.pool.fetchval(
            "SELECT sealed FROM subscription_secret WHERE subscription_id = $1", broken
        )
        await scenario.pool.execute(set_secret, broken, b"broken")
        await scenario.happen(3)
        await scenario.work()
        assert await scenario.states(wants) == ["delivered"] * 3
        assert [(each.kind, each.item) for each in await list_failed(scenario.pool)] == [("webhook queue", str(broken))]
        await scenario.pool.execute(set_secret, broken, sealed)
        scenario.now += timedelta(minutes=1)
        await scenario.work()
        assert (await scenario.states(broken), await list_failed(scenario.pool)) == (["delivered"] * 3, [])


async def test_a_delivery_is_verified_by_third_party_webhook_libraries(scenario):
    scenario.now = wall_now()
    secret = "whsec_" + "c2VjcmV0" * 4
    async with receiving() as plain, receiving() as prefixed:
        await scenario.subscribe(plain)
        rotated = await scenario.subscribe(prefixed, shared_secret="an old secret, soon replaced")
        changes = ChangedSubscription(shared_secret=secret)
        await subscriptions.update_subscription(
            scenario.pool, VAULT, OWNER, subscription_id=rotated, changes=changes, now=scenario.now
        )
        await scenario.happen()
        await scenario.work()
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


async def test_a_delivery_answered_with_500_is_retried_while_later_events_are_delivered(scenario):
    async with receiving() as receiver:
        wants = await scenario.subscribe(receiver, retry_policy=POLICY)
        first, second, third = await scenario.happen(3)

        async def script(request):
            return answer(500 if request.id == first else 204)

        receiver.script = script
        await scenario.work()
        assert [each.id for each in receiver.requests] == [first, second, third]
        assert await scenario.states(wants) == ["pending", "delivered", "delivered"]
        for seconds in (23, 15, 300):
            scenario.now += timedelta(seconds=seconds)
            await scenario.work()
        assert [each.id for each in receiver.requests[3:]] == [first, first]
        assert len({each.body for each in receiver.requests if each.id == first}) == 1
    assert await scenario.states(wants) == ["failed", "delivered", "delivered"]
    attempts = await scenario.attempts(wants)
    assert sorted(attempts) == [(204, "No Content")] * 2 + [(500, "Internal Server Error")] * 3


async def test_a_failed_delivery_without_a_retry_policy_is_not_retried(scenario):
    async def disconnect(_):
        return None

    for script, attempt in (
        (always(answer(301, "location: http://127.0.0.1/")), (301, "a redirect, which is not followed")),
        (always(b"nonsense\r\n\r\n"), (0, "an answer that is not HTTP")),
        (disconnect, (0, "hung up without an answer")),
    ):
        async with receiving(script) as receiver:
            wants = await scenario.subscribe(receiver)
            await scenario.happen()
            await scenario.work()
            assert await scenario.attempts(wants) == [attempt]
            assert await scenario.states(wants) == ["failed"]
            await subscriptions.delete_subscription(scenario.pool, OWNER, wants, now=scenario.now)


async def test_a_410_response_disables_the_subscription(scenario):
    async with receiving(always(answer(410))) as receiver:
        wants = await scenario.subscribe(receiver, retry_policy=POLICY)
        await scenario.happen(3)
        await scenario.work()
        assert len(receiver.requests) == 1
    row = await store.get_subscription(scenario.pool, OWNER, wants)
    assert row.status == "disabled"
    assert row.disabled_because is not None
    assert [(each.subscription_id, each.ended) for each in scenario.failing] == [(wants, True)]


async def test_retry_after_delays_all_deliveries_to_the_receiver(scenario):
    async with receiving(always(answer(429, "Retry-After: 60"))) as receiver:
        wants = await scenario.subscribe(receiver, retry_policy=POLICY)
        await scenario.happen(3)
        await scenario.work()
        receiver.script = None
        scenario.now += timedelta(seconds=59)
        await scenario.work()
        assert len(receiver.requests) == 1
        scenario.now += timedelta(seconds=1)
        await scenario.work()
        assert len(receiver.requests) == 4
    assert await scenario.states(wants) == ["delivered"] * 3


async def test_a_hanging_receiver_does_not_delay_other_receivers(scenario, monkeypatch):
    monkeypatch.setattr(http_client, "ANSWER_SECONDS", 1.0)

    async def never(_):
        await asyncio.sleep(60)

    async with receiving(never) as hanging, receiving() as well:
        for _ in range(5):
            await scenario.subscribe(hanging)
        await scenario.subscribe(well)
        await scenario.happen(60)
        async with asyncio.timeout(10), scenario.dispatcher(lanes_max=24):
            await well.count(60)
            assert len(hanging.requests) == 5
            for _ in range(5):
                await hanging.count(len(hanging.requests) + 1)
            await scenario.happen(30)
            await well.count(90, seconds=0.9)


async def test_a_subscriber_with_slow_receivers_does_not_occupy_all_lanes(scenario):
    async def slowly(_):
        await asyncio.sleep(0.5)
        return answer()

    async with receiving(slowly) as slow, receiving() as well:
        for _ in range(9):
            await scenario.subscribe(slow)
        await scenario.happen(60)
        async with scenario.dispatcher(lanes_max=8):
            await slow.count(8)
            await scenario.subscribe(well, Subscriber(PARTNER, scenario.customer_id))
            await scenario.happen(60)
            await well.count(60, seconds=5)
        assert len(slow.requests) < 9 * 60


async def test_a_repeatedly_failing_subscription_is_reported_once(scenario):
    async with receiving(always(answer(500))) as receiver:
        wants = await scenario.subscribe(receiver)
        await scenario.happen(15)
        await scenario.work()
    assert [(each.subscription_id, each.ended) for each in scenario.failing] == [(wants, False)]


async def test_a_disabled_or_deleted_subscription_receives_no_further_deliveries(scenario):
    for ending in ("disable", "delete"):
        async with receiving() as receiver:
            wants = await scenario.subscribe(receiver)
            turned = asyncio.Event()

            async def script(_, wants=wants, turned=turned, ending=ending):
                if ending == "disable":
                    await subscriptions.update_subscription(
                        scenario.pool,
                        VAULT,
                        OWNER,
                        subscription_id=wants,
                        changes=ChangedSubscription(status="disabled"),
                        now=scenario.now,
                    )
                else:
                    await subscriptions.delete_subscription(scenario.pool, OWNER, wants, now=scenario.now)
                turned.set()
                await asyncio.sleep(1.1)
                return answer()

            receiver.script = script
            await scenario.happen(3)
            await scenario.work()
            assert turned.is_set()
            assert len(receiver.requests) == 1


async def test_a_dispatcher_expires_when_its_heartbeat_stops(scenario):
    async with receiving() as receiver, scenario.pool.acquire() as conn:
        wants = await scenario.subscribe(receiver)
        await scenario.happen()
        await sequencer.sequence_events(scenario.pool, now=scenario.now)
        silent = await attempts.register_worker(conn, scenario.now)
        assert await attempts.claim_queues(conn, silent, scenario.now, failing=False, limit=1, per_subscriber=1) == [
            wants
        ]
        scenario.now += timedelta(seconds=31)
        async with scenario.dispatcher():
            await receiver.count(1)
        assert not await attempts.record_heartbeat(conn, silent, scenario.now)


async def test_a_resent_event_is_delivered_again(scenario):
    async with receiving() as receiver:
        wants = await scenario.subscribe(receiver)
        [event_id] = await scenario.happen()
        await scenario.work()
        await redelivery.resend(scenario.pool, OWNER, wants, event_id=event_id, now=scenario.now)
        await scenario.work()
        assert [each.id for each in receiver.requests] == [event_id] * 2
    assert await scenario.attempts(wants) == [(200, "OK")] * 2


class Stumbling(GuardedWebhookClient):
    """A dispatcher that raises an unexpected error for one of its receivers."""

    def __init__(self, at):
        super().__init__(allowed=LOOPBACK)
        self.at = at

    @override
    def connection(self, url):
        if url == self.at:
            raise LookupError(url)
        return super().connection(url)


async def test_a_failed_delivery_lane_does_not_stop_other_lanes(scenario):
    async with receiving() as good, receiving() as bad:
        broken = await scenario.subscribe(bad)
        well = await scenario.subscribe(good)
        await scenario.happen(3)
        await sequencer.sequence_events(scenario.pool, now=scenario.now)
        stop = asyncio.Event()
        dispatcher = WebhookDispatcher(
            scenario.pool, VAULT, KEYS, Stumbling(bad.url), clock=lambda: scenario.now, pause_seconds=0.01
        )
        work = asyncio.create_task(dispatcher.run(stop))
        async with asyncio.timeout(10):
            while await scenario.states(well) != ["delivered"] * 3:
                await asyncio.sleep(0.01)
        await scenario.happen()
        async with asyncio.timeout(10):
            while await scenario.states(well) != ["delivered"] * 4:
                await asyncio.sleep(0.01)
        stop.set()
        await work

    assert await scenario.states(broken) == ["pending"] * 4
    assert await scenario.pool.fetchval("SELECT count(worker_no) FROM subscription_queue") == 0
