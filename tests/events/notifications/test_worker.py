from datetime import UTC, datetime

import pytest
from tests.support.oauth_users import member

from billfold.audit import store as audit_store
from billfold.audit.types import EntryFilter
from billfold.events.notifications.worker import NotificationWorker, failing_notifier
from billfold.events.webhooks.attempts import FailingSubscription
from billfold.platform import ids

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


async def test_a_team_is_notified_when_a_subscription_fails_or_is_disabled(bank, holder):
    subscription_id = ids.new()
    tell = failing_notifier(bank.vault, lambda: NOW)
    async with bank.pool.acquire() as conn, conn.transaction():
        for whose, ended in ((None, False), (holder.customer_id, False), (holder.customer_id, True)):
            await tell(conn, FailingSubscription(subscription_id, whose, ended=ended))
    rows = await bank.pool.fetch("SELECT type, description FROM notification")
    assert {row["type"] for row in rows} == {"SUBSCRIPTION_DELIVERY_FAILING"}
    assert sorted("410" in row["description"] for row in rows) == [False, True]
    wanted = EntryFilter(customer_id=holder.customer_id)
    (entry,) = await audit_store.list_entries(bank.pool, wanted, limit=9)
    assert (entry.action, entry.actor) == ("subscription.disabled", "SYSTEM")
