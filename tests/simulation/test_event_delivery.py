"""A busy week of events delivered by a worker that is killed ten times: each once, in order.

The worker is killed while the receiver holds a delivery: it was sent and is not yet recorded.
"""

import asyncio
from collections import Counter
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import date, timedelta
from random import Random

from tests.simulation.forked_workers import forked_workers
from tests.support.events import LOOPBACK, SECRET, answer, receiving
from tests.support.small_bank import SmallBank
from tests.support.whole_bank import PARTNER

from billfold.events import sequencer
from billfold.events.kinds import PARTNER_KINDS
from billfold.events.schemas import Subscriber
from billfold.events.webhooks import subscriptions
from billfold.platform.clock import wall_now
from billfold.platform.settings.settings import Settings
from billfold.verify.runner import verify_bank
from billfold.wiring import open_bank

KILLS = 10
NEW_BETWEEN = 10
PATIENCE_SECONDS = 180
DAYS = [date(2025, 6, 2) + timedelta(days=n) for n in range(5)]


@asynccontextmanager
async def opened(dsn, state_dir):
    """A bank and its workers."""
    settings = replace(Settings(), state_dir=state_dir, database_url=dsn)
    await open_bank.initialize_database(settings, dsn)
    workers = forked_workers(settings, webhook_allowed_networks=",".join(map(str, LOOPBACK)))
    try:
        async with open_bank.open_bank(settings, dsn) as bank:
            yield bank, workers
    finally:
        workers.close()


class WorkerKiller:
    """Kills the waiting worker whenever enough new events have arrived."""

    def __init__(self, workers, receiver):
        self.workers, self.receiver, self.kills = workers, receiver, 0

    async def __call__(self, _):
        known = len({each.id for each in self.receiver.requests})
        if self.kills == KILLS or known < (self.kills + 1) * NEW_BETWEEN:
            return answer(204)
        self.kills += 1
        self.workers.kill()
        self.workers.start()
        return None


async def busy_week(bank):
    """Wires, ACH credits and payments between five customers, from Monday to Friday."""
    small, draw = SmallBank(bank), Random(5)
    names = ("Anna", "Bert", "Carl", "Dora", "Emil")
    places = [await small.new_pocket(await small.new_customer(name)) for name in names]
    for day in DAYS:
        await small.until(day)
        for place in places:
            await small.receive_money(place, 10_000_00, rail=draw.choice(("WIRE", "ACH")))
        for _ in range(20):
            origin, destination = draw.sample(places, 2)
            await small.transfer(origin, destination, draw.randrange(1_00, 900_00))


async def all_told(bank, receiver):
    """Wait until every event has arrived; return the last sequence."""
    await sequencer.sequence_events(bank.pool, now=wall_now())
    last = await bank.pool.fetchval("SELECT max(partner_sequence) FROM event_sequence")
    async with asyncio.timeout(PATIENCE_SECONDS):
        while len({each.id for each in receiver.requests}) < last:
            receiver.arrived.clear()
            await receiver.arrived.wait()
    return last


async def test_a_webhook_receiver_gets_every_event_in_order_despite_killed_workers(database_dsn, tmp_path):
    async with opened(database_dsn, tmp_path) as (bank, workers), receiving() as receiver:
        receiver.script = killer = WorkerKiller(workers, receiver)
        await subscriptions.create_subscription(
            bank.pool,
            bank.vault,
            Subscriber(PARTNER),
            url=receiver.url,
            events=PARTNER_KINDS,
            shared_secret=SECRET,
            now=wall_now(),
        )
        workers.start()
        await busy_week(bank)
        last = await all_told(bank, receiver)
        async with bank.pool.acquire() as conn:
            assert (await verify_bank(conn)).findings == ()
    events = {each.id: each.event for each in receiver.requests}
    times = Counter(each.id for each in receiver.requests)
    assert killer.kills == KILLS
    assert max(times.values()) > 1, "what was not written down was sent again, under its id"
    first_seen = [events[event_id]["sequence"] for event_id in dict.fromkeys(times)]
    assert first_seen == list(range(1, last + 1))
    assert [each["previous_sequence"] for each in events.values()] == list(range(last))
