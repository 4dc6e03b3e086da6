"""Sequences without gaps, for partners and customers; deliveries for whoever wants them."""

import asyncio

import asyncpg
import pytest
from tests.support.raised_events import (
    BOTH,
    CUSTOMERS,
    NOW,
    OTHER_PARTNER,
    PARTNER,
    PARTNERS,
    add_customer,
    raise_event,
)
from tests.support.webhook_receivers import SECRET

from billfold.events.webhooks.sequencer import sequence_events
from billfold.events.webhooks.subscriptions import create_subscription, update_subscription
from billfold.events.webhooks.types import SubscriptionChanges, SubscriptionOwner
from billfold.platform.crypto import Vault
from billfold.platform.database.pool import create_pool

VAULT = Vault(bytes(range(32)))
EVERYTHING = (BOTH, PARTNERS, CUSTOMERS)


async def subscribe(conn, owner, events=EVERYTHING):
    made = await create_subscription(
        conn, VAULT, owner, url="https://a.example/", events=events, shared_secret=SECRET, now=NOW
    )
    return made.subscription_id


async def told(conn, partner_id=PARTNER):
    rows = await conn.fetch(
        "SELECT event_id, partner_sequence, customer_sequence FROM told WHERE partner_id = $1 ORDER BY told_no",
        partner_id,
    )
    return [tuple(row) for row in rows]


async def delivered(conn, subscription_id):
    rows = await conn.fetch(
        "SELECT event_id, sequence, previous_sequence FROM delivery WHERE subscription_id = $1"
        " ORDER BY due_at, sequence",
        subscription_id,
    )
    return [tuple(row) for row in rows]


async def test_each_reader_has_a_sequence_of_the_events_it_can_see(conn):
    anna, bert = await add_customer(conn), await add_customer(conn)
    first = await raise_event(conn, anna, BOTH)
    second = await raise_event(conn, anna, CUSTOMERS, seconds=1)
    third = await raise_event(conn, bert, PARTNERS, seconds=2)
    fourth = await raise_event(conn, bert, BOTH, seconds=3)
    assert await sequence_events(conn, now=NOW) == 4
    assert sorted(await told(conn)) == sorted([(first, 1, 1), (second, None, 2), (third, 2, None), (fourth, 3, 1)])
    assert await sequence_events(conn, now=NOW) == 0


async def test_each_partner_has_a_feed_of_its_own(conn):
    anna, bert = await add_customer(conn), await add_customer(conn, OTHER_PARTNER)
    await raise_event(conn, anna)
    await raise_event(conn, bert)
    await sequence_events(conn, now=NOW)
    ours, theirs = await raise_event(conn, anna), await raise_event(conn, bert)
    await sequence_events(conn, now=NOW)
    assert (await told(conn))[-1] == (ours, 2, 2)
    assert (await told(conn, OTHER_PARTNER))[-1] == (theirs, 2, 2)


async def test_events_of_the_bank_have_no_partner(conn):
    await raise_event(conn, await add_customer(conn, None))
    assert await sequence_events(conn, now=NOW) == 1
    assert await conn.fetchval("SELECT count(*) FROM told") == 0


async def test_whoever_sequences_everything_is_numbered_once(database_dsn):
    """Four processes raise events, four others number them, all at once."""
    pool = await create_pool(database_dsn, max_size=10)
    customers = [await add_customer(pool) for _ in range(4)]

    async def raise_some(customer_id):
        for _ in range(15):
            async with pool.acquire() as conn, conn.transaction():
                await raise_event(conn, customer_id)
                await raise_event(conn, customer_id)

    async def number():
        while not done.is_set():
            await sequence_events(pool, now=NOW, wait=False)

    done = asyncio.Event()
    numbering = [asyncio.create_task(number()) for _ in range(4)]
    await asyncio.gather(*map(raise_some, customers))
    done.set()
    await asyncio.gather(*numbering)
    await sequence_events(pool, now=NOW)
    rows = await pool.fetch("SELECT * FROM told ORDER BY partner_sequence")
    assert [row["partner_sequence"] for row in rows] == list(range(1, 121))
    for customer_id in customers:
        numbers = [row["event_no"] for row in rows if row["customer_id"] == customer_id]
        assert numbers == list(range(1, 31))
    await pool.close()


async def test_a_subscription_gets_its_kinds_each_with_the_previous_sequence(conn):
    anna = await add_customer(conn)
    wants = await subscribe(conn, SubscriptionOwner(PARTNER), [BOTH])
    own = await subscribe(conn, SubscriptionOwner(PARTNER, anna), [CUSTOMERS])
    other = await subscribe(conn, SubscriptionOwner(OTHER_PARTNER))
    first = await raise_event(conn, anna, BOTH)
    await raise_event(conn, anna, PARTNERS)
    matured = await raise_event(conn, anna, CUSTOMERS)
    await sequence_events(conn, now=NOW)
    third = await raise_event(conn, anna, BOTH)
    await sequence_events(conn, now=NOW)
    assert await delivered(conn, wants) == [(first, 1, 0), (third, 3, 1)]
    assert await delivered(conn, own) == [(matured, 2, 0)]
    assert await delivered(conn, other) == []


async def test_a_customer_gets_no_partner_only_events(conn):
    anna, bert = await add_customer(conn), await add_customer(conn)
    own = await subscribe(conn, SubscriptionOwner(PARTNER, anna))
    await raise_event(conn, anna, PARTNERS)
    await raise_event(conn, bert, BOTH)
    mine = await raise_event(conn, anna, BOTH)
    await sequence_events(conn, now=NOW)
    assert await delivered(conn, own) == [(mine, 1, 0)]


async def test_what_was_raised_before_is_not_for_a_subscription(conn):
    anna = await add_customer(conn)
    await raise_event(conn, anna)
    await sequence_events(conn, now=NOW)
    await raise_event(conn, anna)
    late = await subscribe(conn, SubscriptionOwner(PARTNER))
    after = await raise_event(conn, anna)
    await sequence_events(conn, now=NOW)
    assert await delivered(conn, late) == [(after, 3, 2)]


async def test_what_was_raised_while_it_was_disabled_is_not_for_it_either(conn):
    anna, owner = await add_customer(conn), SubscriptionOwner(PARTNER)
    wants = await subscribe(conn, owner)
    first = await raise_event(conn, anna)
    await sequence_events(conn, now=NOW)
    await update_subscription(conn, VAULT, owner, wants, SubscriptionChanges(status="disabled"), now=NOW)
    await raise_event(conn, anna)
    await sequence_events(conn, now=NOW)
    await raise_event(conn, anna)
    await update_subscription(conn, VAULT, owner, wants, SubscriptionChanges(status="enabled"), now=NOW)
    fourth = await raise_event(conn, anna)
    await sequence_events(conn, now=NOW)
    assert await delivered(conn, wants) == [(first, 1, 0), (fourth, 4, 3)]


@pytest.mark.parametrize("disabled", [True, False])
async def test_a_subscription_queue_is_due_when_a_delivery_is_queued(conn, disabled):
    wants = await subscribe(conn, SubscriptionOwner(PARTNER), [PARTNERS if disabled else BOTH])
    await raise_event(conn, await add_customer(conn))
    await sequence_events(conn, now=NOW)
    due_at = await conn.fetchval("SELECT due_at FROM subscription_lane WHERE subscription_id = $1", wants)
    assert due_at == (None if disabled else NOW)


async def test_a_clock_that_goes_back_does_not_change_the_order(conn):
    anna = await add_customer(conn)
    wants = await subscribe(conn, SubscriptionOwner(PARTNER))
    ids = []
    for hour in (17, 16, 15):
        ids.append(await raise_event(conn, anna))
        await sequence_events(conn, now=NOW.replace(hour=hour))
    assert [row[0] for row in await delivered(conn, wants)] == ids


async def test_sequences_are_taken_back_with_their_transaction(conn):
    await raise_event(conn, await add_customer(conn))
    taken = conn.transaction()
    await taken.start()
    assert await sequence_events(conn, now=NOW) == 1
    await taken.rollback()
    assert await sequence_events(conn, now=NOW) == 1


async def test_the_work_is_left_to_whoever_is_at_it(conn, database_dsn):
    await raise_event(conn, await add_customer(conn))
    other = await asyncpg.connect(database_dsn)
    async with conn.transaction():
        assert await sequence_events(conn, now=NOW) == 1
        assert await sequence_events(other, now=NOW, wait=False) == 0
    await other.close()
