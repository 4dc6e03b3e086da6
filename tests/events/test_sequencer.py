"""Event sequences without gaps for partners and customers, and deliveries for subscriptions."""

import asyncio

import asyncpg
import pytest
from tests.support.events import (
    BOTH,
    CUSTOMERS,
    NOW,
    OTHER_PARTNER,
    PARTNER,
    PARTNERS,
    SECRET,
    add_customer,
    raise_event,
)

from billfold.events import sequencer
from billfold.events.schemas import OBJECT_FIELDS, Subscriber
from billfold.events.sequencer import sequence_events
from billfold.events.webhooks.subscriptions import ChangedSubscription, create_subscription, update_subscription
from billfold.platform.crypto import Vault

VAULT = Vault(bytes(range(32)))
EVERYTHING = (BOTH, PARTNERS, CUSTOMERS)


async def subscribe(conn, owner, events=EVERYTHING):
    made = await create_subscription(
        conn, VAULT, owner, url="https://a.example/", events=events, shared_secret=SECRET, now=NOW
    )
    return made.id


async def sequences_of_events(conn, partner_id=PARTNER):
    rows = await conn.fetch(
        "SELECT event_id, partner_sequence, customer_sequence FROM event_sequence WHERE partner_id = $1 "
        "ORDER BY global_sequence",
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


async def test_partner_and_customer_sequences_number_only_their_visible_events(conn):
    anna, bert = await add_customer(conn), await add_customer(conn)
    first = await raise_event(conn, anna, BOTH)
    second = await raise_event(conn, anna, CUSTOMERS, seconds=1)
    third = await raise_event(conn, bert, PARTNERS, seconds=2)
    fourth = await raise_event(conn, bert, BOTH, seconds=3)
    assert await sequence_events(conn, now=NOW) == 4
    assert sorted(await sequences_of_events(conn)) == sorted(
        [(first, 1, 1), (second, None, 2), (third, 2, None), (fourth, 3, 1)]
    )
    assert await sequence_events(conn, now=NOW) == 0


async def test_every_partner_has_a_separate_event_sequence(conn):
    anna, bert = await add_customer(conn), await add_customer(conn, OTHER_PARTNER)
    await raise_event(conn, anna)
    await raise_event(conn, bert)
    await sequence_events(conn, now=NOW)
    ours, theirs = await raise_event(conn, anna), await raise_event(conn, bert)
    await sequence_events(conn, now=NOW)
    assert (await sequences_of_events(conn))[-1] == (ours, 2, 2)
    assert (await sequences_of_events(conn, OTHER_PARTNER))[-1] == (theirs, 2, 2)


async def test_events_of_the_bank_are_not_sequenced_for_partners(conn):
    await raise_event(conn, await add_customer(conn, None))
    assert await sequence_events(conn, now=NOW) == 1
    assert await conn.fetchval("SELECT count(*) FROM event_sequence") == 0


async def test_a_subscription_receives_its_kinds_with_the_previous_sequence(conn):
    anna = await add_customer(conn)
    wants = await subscribe(conn, Subscriber(PARTNER), [BOTH])
    own = await subscribe(conn, Subscriber(PARTNER, anna), [CUSTOMERS])
    other = await subscribe(conn, Subscriber(OTHER_PARTNER))
    first = await raise_event(conn, anna, BOTH)
    await raise_event(conn, anna, PARTNERS)
    matured = await raise_event(conn, anna, CUSTOMERS)
    await sequence_events(conn, now=NOW)
    third = await raise_event(conn, anna, BOTH)
    await sequence_events(conn, now=NOW)
    assert await delivered(conn, wants) == [(first, 1, 0), (third, 3, 1)]
    assert await delivered(conn, own) == [(matured, 2, 0)]
    assert await delivered(conn, other) == []


async def test_a_customer_receives_no_partner_only_events(conn):
    anna, bert = await add_customer(conn), await add_customer(conn)
    own = await subscribe(conn, Subscriber(PARTNER, anna))
    await raise_event(conn, anna, PARTNERS)
    await raise_event(conn, bert, BOTH)
    mine = await raise_event(conn, anna, BOTH)
    await sequence_events(conn, now=NOW)
    assert await delivered(conn, own) == [(mine, 1, 0)]


async def test_events_raised_before_a_subscription_are_not_delivered_to_it(conn):
    anna = await add_customer(conn)
    await raise_event(conn, anna)
    await sequence_events(conn, now=NOW)
    await raise_event(conn, anna)
    late = await subscribe(conn, Subscriber(PARTNER))
    after = await raise_event(conn, anna)
    await sequence_events(conn, now=NOW)
    assert await delivered(conn, late) == [(after, 3, 2)]


async def test_events_raised_while_a_subscription_is_disabled_are_not_delivered(conn):
    anna, owner = await add_customer(conn), Subscriber(PARTNER)
    wants = await subscribe(conn, owner)
    first = await raise_event(conn, anna)
    await sequence_events(conn, now=NOW)
    await update_subscription(
        conn, VAULT, owner, subscription_id=wants, changes=ChangedSubscription(status="disabled"), now=NOW
    )
    await raise_event(conn, anna)
    await sequence_events(conn, now=NOW)
    await raise_event(conn, anna)
    await update_subscription(
        conn, VAULT, owner, subscription_id=wants, changes=ChangedSubscription(status="enabled"), now=NOW
    )
    fourth = await raise_event(conn, anna)
    await sequence_events(conn, now=NOW)
    assert await delivered(conn, wants) == [(first, 1, 0), (fourth, 4, 3)]


@pytest.mark.parametrize("disabled", [True, False])
async def test_a_subscription_queue_is_due_when_a_delivery_is_queued(conn, disabled):
    wants = await subscribe(conn, Subscriber(PARTNER), [PARTNERS if disabled else BOTH])
    await raise_event(conn, await add_customer(conn))
    await sequence_events(conn, now=NOW)
    due_at = await conn.fetchval("SELECT due_at FROM subscription_queue WHERE subscription_id = $1", wants)
    assert due_at == (None if disabled else NOW)


async def test_a_clock_set_back_does_not_change_the_event_order(conn):
    anna = await add_customer(conn)
    wants = await subscribe(conn, Subscriber(PARTNER))
    ids = []
    for hour in (17, 16, 15):
        ids.append(await raise_event(conn, anna))
        await sequence_events(conn, now=NOW.replace(hour=hour))
    assert [row[0] for row in await delivered(conn, wants)] == ids


@pytest.fixture
async def second_conn(database_dsn):
    connection = await asyncpg.connect(database_dsn)
    yield connection
    await connection.close()


async def sequence_new_events(conn):
    """Sequence new events and return their ids in the partner's order."""
    count = await sequence_events(conn, now=NOW)
    return [event_id for event_id, *_ in (await sequences_of_events(conn))[-count:]] if count else []


async def test_an_event_of_a_late_commit_is_sequenced_late_and_only_once(conn, second_conn):
    anna, bert = await add_customer(conn), await add_customer(conn)
    late = second_conn.transaction()
    await late.start()
    first = await raise_event(second_conn, anna)
    second = await raise_event(conn, bert)
    assert await sequence_new_events(conn) == [second]
    third = await raise_event(conn, bert)
    await late.commit()
    assert sorted(await sequence_new_events(conn)) == sorted([third, first])
    assert await sequence_new_events(conn) == []


async def test_events_of_a_customer_keep_their_order_when_its_transactions_do_not(conn, second_conn):
    """The older transaction writes the second event because it waited for the customer's head."""
    anna, bert = await add_customer(conn), await add_customer(conn)
    older = second_conn.transaction()
    await older.start()
    elsewhere = await raise_event(second_conn, bert)
    first = await raise_event(conn, anna)
    second = await raise_event(second_conn, anna)
    await older.commit()
    read_now = await sequence_new_events(conn)
    assert [each for each in read_now if each != elsewhere] == [first, second]
    assert len(read_now) == 3


async def test_events_are_sequenced_again_after_a_rollback(conn):
    event_id = await raise_event(conn, await add_customer(conn))
    transaction = conn.transaction()
    await transaction.start()
    assert await sequence_new_events(conn) == [event_id]
    await transaction.rollback()
    assert await sequence_new_events(conn) == [event_id]


async def test_sequencing_without_waiting_does_nothing_during_a_concurrent_transaction(conn, second_conn):
    anna = await add_customer(conn)
    await raise_event(conn, anna)
    async with conn.transaction():
        assert await sequence_events(conn, now=NOW) == 1
        assert await sequence_events(second_conn, now=NOW, wait=False) == 0


async def test_events_committed_while_others_are_sequenced_are_sequenced_once(conn, second_conn, database_dsn):
    async def raise_events(customer):
        own = await asyncpg.connect(database_dsn)
        for _ in range(400):
            await raise_event(own, customer)
        await own.close()

    customers = [await add_customer(conn) for _ in range(6)]
    raising = asyncio.gather(*map(raise_events, customers))
    sequenced = 0
    while not raising.done():
        sequenced += await sequence_events(second_conn, now=NOW)
    await raising
    assert sequenced + await sequence_events(second_conn, now=NOW) == 2400
    assert len(await sequences_of_events(conn)) == 2400


async def test_has_new_events_is_true_when_an_event_was_raised(conn, second_conn):
    anna, bert = await add_customer(conn), await add_customer(conn)
    assert not await sequencer.has_new_events(conn)
    late = second_conn.transaction()
    await late.start()
    await raise_event(second_conn, anna)
    await raise_event(conn, bert)
    assert await sequencer.has_new_events(conn)
    await sequence_new_events(conn)
    assert not await sequencer.has_new_events(conn)
    await late.commit()
    assert await sequencer.has_new_events(conn)


async def test_positions_are_repaired_when_the_bank_was_restored_from_a_dump(conn):
    anna = await add_customer(conn)
    for _ in range(3):
        await raise_event(conn, anna)
    await conn.execute("UPDATE event SET xid = (1000000000 + event_no)::text::xid8")
    await conn.execute("UPDATE event_reader SET position = '1000000002:1000000003:1000000002'")
    assert await sequencer.repair_positions(conn)
    assert not await sequencer.repair_positions(conn)
    later = await raise_event(conn, anna)
    assert await sequence_events(conn, now=NOW) == 3
    assert [row["event_no"] for row in await conn.fetch("SELECT event_no FROM event_sequence ORDER BY event_no")] == [
        2,
        3,
        4,
    ]
    assert (await sequences_of_events(conn))[-1][0] == later


async def test_sequencing_a_long_event_log_uses_no_sequential_scan(conn):
    anna = await add_customer(conn)
    await conn.execute(
        "INSERT INTO event SELECT $1, n, gen_random_uuid(), 'trades.maturity', '{}', now()"
        " FROM generate_series(1, 20000) n",
        anna,
    )
    await conn.execute("UPDATE event_reader SET position = pg_current_snapshot()")
    await raise_event(conn, anna)
    async with conn.transaction():
        position = await conn.fetchval(sequencer._POSITION, sequencer.SEQUENCER)
        snapshot = await conn.fetchval(sequencer._SNAPSHOT)
        objects = list(OBJECT_FIELDS), list(OBJECT_FIELDS.values())
        parameters = (position, sequencer.SEQUENCER, list(EVERYTHING), list(EVERYTHING), NOW, *objects, snapshot)
        plan = await conn.fetch(f"EXPLAIN (ANALYZE, FORMAT TEXT) {sequencer._SEQUENCE}", *parameters)
    assert "Seq Scan on event" not in "\n".join(row[0] for row in plan)
