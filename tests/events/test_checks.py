"""Sequences and deliveries that disagree with the log are reported."""

from contextlib import suppress
from datetime import timedelta

import asyncpg
import pytest
from tests.events.test_sequencer import subscribe
from tests.events.webhooks.test_attempts import DELIVERED, FAILED, attempt_of
from tests.support.events import BOTH, CUSTOMERS, NOW, PARTNER, PARTNERS, add_customer, raise_event

from billfold.events import sequencer
from billfold.events.checks import CHECKS
from billfold.events.schemas import Subscriber
from billfold.events.webhooks import attempts, redelivery
from billfold.events.webhooks.store import DeliveryOutcome, EventSimulation
from billfold.platform import ids
from billfold.platform.database.checks import Findings, run_checks


@pytest.fixture
async def sequenced(conn):
    """A database with sequenced and unsequenced events."""
    anna, bert = await add_customer(conn), await add_customer(conn)
    wants = await subscribe(conn, Subscriber(PARTNER))
    await subscribe(conn, Subscriber(PARTNER, anna))
    for kind in (BOTH, CUSTOMERS, PARTNERS, BOTH):
        await raise_event(conn, anna, kind)
        await raise_event(conn, bert, kind)
    await sequencer.sequence_events(conn, now=NOW)
    event = EventSimulation(event_id=ids.new(), kind=BOTH, raised_at=NOW, payload="{}")
    await redelivery.simulate_event(conn, Subscriber(PARTNER), event, now=NOW)
    rows = await conn.fetch("SELECT event_id FROM delivery WHERE subscription_id = $1 ORDER BY sequence", wants)
    outcomes = DELIVERED, FAILED, DeliveryOutcome(state="pending", due_at=NOW + timedelta(hours=1))
    made = [attempt_of(wants, row["event_id"], outcome) for row, outcome in zip(rows, outcomes, strict=False)]
    await attempts.record_attempts(conn, made, now=NOW)
    await raise_event(conn, anna)  # it was not read yet
    return conn


async def findings(conn):
    found = Findings()
    await run_checks(conn, found, CHECKS)
    return {(each.table, each.message) for each in found.report().findings}


async def test_event_sequences_are_clean_when_undamaged(sequenced):
    assert await findings(sequenced) == set()


DAMAGE = [
    ("DELETE FROM event_sequence WHERE partner_sequence = 3", "event_sequence"),
    ("UPDATE event_sequence SET partner_sequence = 99 WHERE partner_sequence = 3", "event_sequence"),
    ("UPDATE event_sequence SET partner_sequence = 2 WHERE partner_sequence = 3", "event_sequence"),
    ("UPDATE event_sequence SET customer_sequence = 5 WHERE customer_sequence = 2", "event_sequence"),
    ("UPDATE event_sequence SET partner_sequence = 7 - partner_sequence", "event_sequence"),
    ("UPDATE event_sequence SET customer_sequence = 4 - customer_sequence", "event_sequence"),
    ("UPDATE event_sequence SET kind = 'x' WHERE partner_sequence = 1", "event_sequence"),
    ("UPDATE event_sequence SET event_id = gen_random_uuid() WHERE partner_sequence = 1", "event_sequence"),
    ("UPDATE event_sequence SET partner_id = gen_random_uuid() WHERE partner_sequence = 1", "event_sequence"),
    ("UPDATE event_sequence SET raised_at = now() WHERE partner_sequence = 1", "event_sequence"),
    ("UPDATE event SET kind = 'x' WHERE event_no = 1", "event_sequence"),
    ("DELETE FROM event WHERE event_no = 2", "event_sequence"),
    ("UPDATE delivery SET sequence = 9 WHERE sequence = 3", "delivery"),
    ("UPDATE delivery SET previous_sequence = 9 WHERE sequence = 3", "delivery"),
    ("UPDATE delivery SET event_id = gen_random_uuid() WHERE sequence = 3", "delivery"),
    ("UPDATE delivery SET event_id = gen_random_uuid() WHERE sequence IS NULL", "delivery"),
    ("UPDATE delivery SET subscription_id = gen_random_uuid() WHERE sequence = 3", "delivery"),
    ("UPDATE delivery SET attempts = 9 WHERE sequence = 3", "delivery"),
    ("UPDATE delivery SET state = 'delivered', due_at = NULL WHERE sequence = 3", "delivery"),
    ("UPDATE delivery SET state = 'failed', due_at = NULL, attempts = 1 WHERE attempts = 0", "delivery"),
    ("UPDATE delivery SET due_at = NULL WHERE state = 'pending'", "delivery"),
    ("UPDATE delivery_attempt SET success = NOT success", "delivery_attempt"),
    ("DELETE FROM delivery WHERE state = 'delivered'", "delivery_attempt"),
    ("UPDATE subscription_queue SET due_at = NULL", "subscription_queue"),
    ("DELETE FROM subscription_queue", "subscription_queue"),
]


async def test_damaged_event_sequences_are_reported(sequenced):
    for damage, table in DAMAGE:
        savepoint = sequenced.transaction()
        await savepoint.start()
        with suppress(asyncpg.IntegrityConstraintViolationError):  # refused: the row is protected
            assert await sequenced.execute(damage) not in {"UPDATE 0", "DELETE 0"}, damage
            assert table in {found for found, _ in await findings(sequenced)}, damage
        await savepoint.rollback()
