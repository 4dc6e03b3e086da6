"""Redelivery: events sent again on request, and refused requests."""

from datetime import timedelta
from typing import Any

import pytest
from tests.events.test_sequencer import VAULT, delivered, subscribe
from tests.support.events import BOTH, CUSTOMERS, NOW, OTHER_PARTNER, PARTNER, RAISED, add_customer, raise_event

from billfold.events import sequencer
from billfold.events.schemas import Subscriber
from billfold.events.webhooks import redelivery, subscriptions
from billfold.events.webhooks.store import EventSimulation
from billfold.events.webhooks.subscriptions import ChangedSubscription
from billfold.platform import ids
from billfold.platform.errors import Refused

OWNER = Subscriber(PARTNER)


async def queue(conn, subscription_id):
    rows = await conn.fetch(
        "SELECT event_id FROM delivery WHERE subscription_id = $1 AND state = 'pending' ORDER BY due_at, sequence",
        subscription_id,
    )
    return [row["event_id"] for row in rows]


async def fail(conn, *, tries=3):
    await conn.execute("UPDATE delivery SET state = 'failed', due_at = NULL, attempts = $1", tries)


def simulated(**fields):
    usual: dict[str, Any] = {"event_id": ids.new(), "kind": BOTH, "raised_at": RAISED, "payload": "{}"}
    return EventSimulation(**usual | fields)


async def test_missing_deliveries_since_a_time_are_queued_with_their_previous_sequence(conn):
    anna = await add_customer(conn)
    events = []
    for second in range(4):
        events.append(await raise_event(conn, anna, seconds=second))
        await raise_event(conn, anna, CUSTOMERS, seconds=second)
    await sequencer.sequence_events(conn, now=NOW)
    wants = await subscribe(conn, OWNER)
    own = await subscribe(conn, Subscriber(PARTNER, anna), [CUSTOMERS])
    events.append(await raise_event(conn, anna, seconds=9))
    await sequencer.sequence_events(conn, now=NOW)
    since = RAISED + timedelta(seconds=2)
    assert await redelivery.replay_missing(conn, OWNER, wants, since=since, now=NOW) == 2
    assert await redelivery.replay_missing(conn, OWNER, wants, since=since, now=NOW) == 0
    assert sorted(await delivered(conn, wants), key=lambda row: row[1]) == [
        (events[2], 3, 2),
        (events[3], 4, 3),
        (events[4], 5, 4),
    ]
    owner = Subscriber(PARTNER, anna)
    assert await redelivery.replay_missing(conn, owner, own, since=RAISED, now=NOW) == 4
    assert [row[1:] for row in await delivered(conn, own)] == [(2, 0), (4, 2), (6, 4), (8, 6)]


async def test_redelivery_to_a_disabled_subscription_is_refused(conn):
    wants = await subscribe(conn, OWNER)
    await subscriptions.update_subscription(
        conn, VAULT, OWNER, subscription_id=wants, changes=ChangedSubscription(status="disabled"), now=NOW
    )
    for attempt in (
        redelivery.resend(conn, OWNER, wants, event_id=ids.new(), now=NOW),
        redelivery.redeliver_failed(conn, OWNER, wants, since=NOW, now=NOW),
        redelivery.replay_missing(conn, OWNER, wants, since=NOW, now=NOW),
        redelivery.send_example(conn, OWNER, wants, event=simulated(), now=NOW),
    ):
        with pytest.raises(Refused) as refused:
            await attempt
        assert refused.value.code == "subscription-disabled"
    assert await redelivery.simulate_event(conn, OWNER, simulated(), now=NOW) == 0


async def test_a_simulated_event_is_queued_for_subscriptions_to_its_kind(conn):
    anna = await add_customer(conn)
    wants = await subscribe(conn, OWNER, [BOTH])
    others = [
        await subscribe(conn, OWNER, [CUSTOMERS]),
        await subscribe(conn, Subscriber(PARTNER, anna)),
        await subscribe(conn, Subscriber(OTHER_PARTNER)),
    ]
    event = simulated()
    assert await redelivery.simulate_event(conn, OWNER, event, now=NOW) == 1
    assert await queue(conn, wants) == [event.event_id]
    assert [await queue(conn, other) for other in others] == [[], [], []]
    annas = simulated()
    assert await redelivery.simulate_event(conn, Subscriber(PARTNER, anna), annas, now=NOW) == 1
    assert await queue(conn, others[1]) == [annas.event_id]


async def test_a_repeated_simulated_event_is_queued_once(conn):
    await subscribe(conn, OWNER)
    event = simulated()
    assert await redelivery.simulate_event(conn, OWNER, event, now=NOW) == 1
    assert await redelivery.simulate_event(conn, OWNER, event, now=NOW) == 0
    with pytest.raises(Refused) as refused:
        other = simulated(event_id=event.event_id, payload='{"a": 1}')
        await redelivery.simulate_event(conn, OWNER, other, now=NOW)
    assert refused.value.code == "duplicate-id"
