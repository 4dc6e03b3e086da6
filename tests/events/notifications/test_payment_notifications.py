"""Payment notifications of teams: each is created once, in order, by the first reader."""

import asyncio
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from uuid import UUID

import msgspec
import pytest
from tests.support.events import notified
from tests.support.oauth import member

from billfold.events.notifications import payment_notifications
from billfold.events.notifications.kinds import NOTIFICATION_TYPES
from billfold.events.notifications.payment_notifications import PAYMENT_NOTIFICATIONS, describe, notify_of_payments
from billfold.platform.errors import BillfoldError

NOW = datetime(2026, 3, 2, 15, tzinfo=UTC)


@pytest.fixture
async def read_notifications(bank):
    """Return the notifications of a customer's team, oldest first."""

    async def read(holder):
        await notify_of_payments(bank.pool, bank.vault, now=NOW)
        return await notified(bank, holder.customer_id)

    return read


@pytest.fixture
async def payer_and_payee(bank, new_holder):
    """A payer and a payee with a team each."""
    found = await new_holder(), await new_holder()
    for each in found:
        await member(bank.pool, each.customer_id)
    return found


async def test_both_teams_are_notified_of_a_payment(bank, payer_and_payee, read_notifications):
    payer, payee = payer_and_payee
    await payer.deposit(5_000_00)
    await payer.transfer(payer.place, payee.place, 1_234_56)
    with suppress(BillfoldError):
        await payer.transfer(payer.place, payee.place, 99_999_00)
    refused = "A transfer of $99,999.00 was rejected; nothing left the Pocket Reserve"
    assert await read_notifications(payer) == [
        ("FUNDS_RECEIVED", "A wire arrived in the Pocket Reserve."),
        ("TRANSFER_COMPLETED", "A transfer of $1,234.56 was sent from the Pocket Reserve."),
        ("TRANSFER_REJECTED", f"{refused} (INSUFFICIENT_FUNDS)."),
    ]
    assert await read_notifications(payee) == [
        ("FUNDS_RECEIVED", "A transfer of $1,234.56 from A holder arrived in the Pocket Reserve.")
    ]
    assert len(await read_notifications(payer)) == 3


async def test_a_notification_names_the_event_and_the_amount(bank, payer_and_payee, read_notifications):
    payer, payee = payer_and_payee
    await payer.deposit(5_000_00)
    await payer.transfer(payer.place, payee.place, 1_00)
    await read_notifications(payee)
    row = await bank.pool.fetchrow(
        "SELECT metadata, created_at FROM notification WHERE customer_id = $1", payee.customer_id
    )
    metadata = msgspec.json.decode(row["metadata"])
    assert row["created_at"] - NOW < timedelta(milliseconds=1)
    assert metadata["amount_usdc"] == 100
    assert metadata["pocket_id"] == str(payee.pocket_id)
    assert metadata["occurred_at"] == "2025-06-02T13:00:00.000000Z"
    kind = await bank.pool.fetchval("SELECT kind FROM event WHERE event_id = $1", UUID(metadata["event_id"]))
    assert kind == metadata["event_type"] == "transfers.on-us.received"


async def test_every_event_is_notified_once_when_many_readers_run(
    bank, payer_and_payee, read_notifications, monkeypatch
):
    monkeypatch.setattr(payment_notifications, "BATCH_SIZE", 3)
    payer, _ = payer_and_payee
    for _ in range(10):
        await payer.deposit(1_00)
    await asyncio.gather(*(notify_of_payments(bank.pool, bank.vault, now=NOW, wait=n % 2 > 0) for n in range(6)))
    assert len(await read_notifications(payer)) == 10


async def test_a_customer_without_a_team_is_skipped_for_good(bank, new_holder, read_notifications):
    holder = await new_holder()
    await holder.deposit(1_00)
    assert await read_notifications(holder) == []
    await member(bank.pool, holder.customer_id)
    assert await read_notifications(holder) == []
    await holder.deposit(1_00)
    assert len(await read_notifications(holder)) == 1


async def test_events_before_the_baseline_raise_no_notification(bank, payer_and_payee, read_notifications):
    payer, _ = payer_and_payee
    await payer.deposit(1_00)
    await bank.pool.execute("INSERT INTO notification_baseline SELECT customer_id, event_no FROM ledger_head")
    await payer.deposit(2_00)
    assert len(await read_notifications(payer)) == 1


def test_every_notification_cause_has_a_type_and_a_sentence():
    for meaning in PAYMENT_NOTIFICATIONS.values():
        assert meaning.type in NOTIFICATION_TYPES
        assert describe(meaning, 100, "Reserve", party="Contoso", reason=None).startswith(f"{meaning.noun} of $1.00 ")
