from datetime import UTC, datetime, timedelta

import pytest
from tests.support.databases import as_owner
from tests.support.events import notified
from tests.support.oauth import member

from billfold.audit import store
from billfold.audit.rules import EntryFilter
from billfold.events.notifications.payment_notifications import NotificationWorker, failing_notifier
from billfold.events.webhooks.attempts import FailingSubscription
from billfold.platform import ids
from billfold.platform.database.background_work import list_failed

NOW = datetime(2026, 3, 2, 15, tzinfo=UTC)


@pytest.fixture
async def holder(bank, new_holder):
    made = await new_holder()
    await member(bank.pool, made.customer_id)
    return made


async def test_a_team_is_notified_of_money_by_the_worker(bank, holder):
    await holder.deposit(100_00)
    crier = NotificationWorker(lambda: NOW)
    assert await crier(bank) > 0
    assert await crier(bank) == 0
    row = await bank.pool.fetchrow("SELECT type, created_at FROM notification")
    assert tuple(row) == ("FUNDS_RECEIVED", NOW)


async def test_an_event_that_fails_to_notify_does_not_block_others(bank, holder):
    for _ in range(3):
        await holder.deposit(100_00)
    change = "UPDATE event SET payload = $1::text::json WHERE kind LIKE '%.success' AND event_no = $2"
    no, payload = await bank.pool.fetchrow("SELECT event_no, payload FROM event WHERE kind LIKE '%.success' LIMIT 1")
    await as_owner(bank, change, "{}", no)
    await NotificationWorker(lambda: NOW)(bank)
    assert await bank.pool.fetchval("SELECT count(*) FROM notification") == 2
    assert [each.kind for each in await list_failed(bank.pool)] == ["notification"]
    await as_owner(bank, change, payload, no)
    await NotificationWorker(lambda: NOW + timedelta(minutes=1))(bank)
    assert await bank.pool.fetchval("SELECT count(*) FROM notification") == 3
    assert await list_failed(bank.pool) == []


async def test_a_team_is_notified_when_a_subscription_fails_or_is_disabled(bank, holder):
    subscription_id = ids.new()
    tell = failing_notifier(bank.vault, lambda: NOW)
    async with bank.pool.acquire() as conn, conn.transaction():
        for whose, ended in ((None, False), (holder.customer_id, False), (holder.customer_id, True)):
            await tell(conn, FailingSubscription(subscription_id, whose, ended=ended))
    rows = await notified(bank)
    assert {kind for kind, _ in rows} == {"SUBSCRIPTION_DELIVERY_FAILING"}
    assert sorted("410" in description for _, description in rows) == [False, True]
    wanted = EntryFilter(customer_id=holder.customer_id)
    (entry,) = await store.list_entries(bank.pool, wanted, limit=9)
    assert (entry.action, entry.actor) == ("subscription.disabled", "SYSTEM")
