"""Attempts are purged when they are old: for each delivery all or none."""

from datetime import timedelta

from tests.events.test_sequencer import subscribe
from tests.support.events import NOW, PARTNER, add_customer, raise_event

from billfold.events import sequencer
from billfold.events.checks import CHECKS
from billfold.events.schemas import Subscriber
from billfold.events.webhooks import attempts, redelivery, store
from billfold.events.webhooks.store import Attempt, DeliveryOutcome
from billfold.platform import ids
from billfold.platform.database.checks import Findings, run_checks

DAY = timedelta(days=1)
FAILED, DELIVERED = DeliveryOutcome(state="failed"), DeliveryOutcome(state="delivered")


async def queued(conn):
    """A subscription and its pending delivery."""
    wants = await subscribe(conn, Subscriber(PARTNER))
    event_id = await raise_event(conn, await add_customer(conn))
    await sequencer.sequence_events(conn, now=NOW)
    return wants, event_id


def attempt_of(subscription_id, event_id, outcome, *, at=NOW):
    """Return an attempt to deliver an event, with the response that fits its outcome."""
    return Attempt(
        attempt_id=ids.new(),
        subscription_id=subscription_id,
        event_id=event_id,
        response_code=200 if outcome == DELIVERED else 500,
        response_message="",
        called_at=at,
        duration_ms=1,
        outcome=outcome,
    )


async def attempt(conn, wants, event_id, outcome, at):
    await attempts.record_attempts(conn, [attempt_of(wants, event_id, outcome, at=at)], now=at)


async def listed(conn, wants):
    return len(await store.ATTEMPTS.rows(conn, wants, None, limit=100))


async def test_delivery_attempts_are_purged_together_when_the_last_is_old(conn):
    wants, event_id = await queued(conn)
    approval_response = DeliveryOutcome(state="pending", due_at=NOW + DAY)
    await attempt(conn, wants, event_id, outcome=approval_response, at=NOW)
    await attempt(conn, wants, event_id, outcome=DELIVERED, at=NOW + DAY)

    assert await attempts.purge_attempts(conn, NOW + DAY, limit=10) == 0
    assert await listed(conn, wants) == 2
    assert await attempts.purge_attempts(conn, NOW + 2 * DAY, limit=1) == 2
    assert await listed(conn, wants) == 0

    found = Findings()
    await run_checks(conn, found, CHECKS)
    assert not found.report().findings
    # A delivered event is distinguished from one that never was, and can be sent again.
    assert await redelivery.replay_missing(conn, Subscriber(PARTNER), wants, since=NOW - 999 * DAY, now=NOW) == 0
    await redelivery.resend(conn, Subscriber(PARTNER), wants, event_id=event_id, now=NOW + 3 * DAY)


async def test_attempts_of_a_pending_delivery_are_not_purged(conn):
    wants, event_id = await queued(conn)
    await attempt(conn, wants, event_id, outcome=DeliveryOutcome(state="pending", due_at=NOW + DAY), at=NOW)
    assert await attempts.purge_attempts(conn, NOW + 99 * DAY, limit=10) == 0

    await attempt(conn, wants, event_id, outcome=FAILED, at=NOW + DAY)
    assert await attempts.purge_attempts(conn, NOW + 99 * DAY, limit=10) == 2


async def test_delivery_attempts_are_purged_in_batches_oldest_first(conn):
    wants, customer_id = await subscribe(conn, Subscriber(PARTNER)), await add_customer(conn)
    for nth in range(3):
        event_id = await raise_event(conn, customer_id)
        await sequencer.sequence_events(conn, now=NOW)
        await attempt(conn, wants, event_id, outcome=FAILED, at=NOW + nth * DAY)
    assert await attempts.purge_attempts(conn, NOW + 9 * DAY, limit=2) == 2
    (left,) = await store.ATTEMPTS.rows(conn, wants, None, limit=100)
    assert left.called_at == NOW + 2 * DAY
