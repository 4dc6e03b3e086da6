from datetime import UTC, datetime

import pytest
from tests.support.oauth_users import member
from tests.support.whole_bank import bank, new_holder

from billfold.audit import store as audit_store
from billfold.audit.types import Wanted
from billfold.events.notifications.worker import Crier, tell_failing
from billfold.events.webhooks.attempts import Failing
from billfold.platform import ids

__all__ = ["bank", "new_holder"]

NOW = datetime(2026, 3, 2, 15, tzinfo=UTC)


@pytest.fixture
async def holder(bank, new_holder):
    made = await new_holder()
    await member(bank.pool, made.customer_id)
    return made


async def test_a_team_is_told_of_money_by_the_worker(bank, holder):
    await holder.deposit(100_00)
    crier = Crier(lambda: NOW)
    assert await crier(bank) > 0
    assert await crier(bank) == 0
    row = await bank.pool.fetchrow("SELECT type, created_at FROM notification")
    assert tuple(row) == ("FUNDS_RECEIVED", NOW)


async def test_a_team_is_told_of_a_subscription_that_fails_and_of_one_that_ended(bank, holder):
    subscription_id = ids.new()
    tell = tell_failing(bank.vault, lambda: NOW)
    async with bank.pool.acquire() as conn, conn.transaction():
        for whose, ended in (
            (None, False),
            (holder.customer_id, False),
            (holder.customer_id, True),
        ):
            await tell(conn, Failing(subscription_id, whose, ended=ended))
    rows = await bank.pool.fetch("SELECT type, description FROM notification")
    assert {row["type"] for row in rows} == {"SUBSCRIPTION_DELIVERY_FAILING"}
    assert sorted("410" in row["description"] for row in rows) == [False, True]
    wanted = Wanted(customer_id=holder.customer_id)
    (entry,) = await audit_store.list_entries(bank.pool, wanted, limit=9)
    assert (entry.action, entry.actor) == ("subscription.disabled", "SYSTEM")
