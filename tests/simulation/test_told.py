"""A busy week, told to a receiver by a worker that is killed ten times: everything, once, in order.

The worker is killed while the receiver holds a delivery: it was sent and is not yet written down.
"""

import asyncio
import os
import signal
import subprocess
from collections import Counter
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import date, timedelta
from random import Random

from tests.interfaces.outbound.receivers import LOOPBACK, SECRET, answer, receiving
from tests.small_bank import Town
from tests.whole_bank import PARTNER

from billfold import wiring
from billfold.domain import webhooks
from billfold.domain.events import PARTNER_KINDS
from billfold.domain.webhooks import Owner
from billfold.engine.verify import verify_bank
from billfold.kit.clock import wall_now
from billfold.kit.settings import Settings

KILLS = 10
DELIVERIES_BETWEEN = 23
PATIENCE_SECONDS = 20
DAYS = [date(2025, 6, 2) + timedelta(days=n) for n in range(5)]


class Programs:
    """`billfold worker` as a process of its own, started again whenever it is gone."""

    def __init__(self, settings):
        self.settings = settings
        self.kills = 0
        self.worker = None

    def start(self):
        environment = wiring.Wiring(
            {name: value for name, value in os.environ.items() if not name.startswith("BILLFOLD_")}
        ).environment(
            self.settings, self.settings.database_url, log_level="WARNING",
            webhook_allowed_networks=",".join(map(str, LOOPBACK)),
        )  # fmt: skip
        with (self.settings.state_dir / "worker.log").open("ab") as log:
            self.worker = subprocess.Popen(
                [*wiring.Wiring({}).program(), "worker"], env=environment,
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip

    def kill(self):
        os.kill(self.worker.pid, signal.SIGKILL)
        self.worker.wait()

    async def told(self, request, received):
        """What the receiver does: now and then the worker dies before it is answered."""
        if self.kills < KILLS and received >= (self.kills + 1) * DELIVERIES_BETWEEN:
            self.kills += 1
            self.kill()
            self.start()
            return None
        return answer(204)


@asynccontextmanager
async def opened(dsn, state_dir):
    settings = replace(Settings(), state_dir=state_dir, database_url=dsn)
    await wiring.found(settings, dsn)
    async with wiring.open_bank(settings, dsn) as bank:
        yield bank, Programs(settings)


async def busy_week(bank):
    """Wires, ACH credits and payments between five customers, from Monday to Friday."""
    town, draw = Town(bank), Random(5)
    people = []
    for name in ("Anna", "Bert", "Carl", "Dora", "Emil"):
        customer_id = await town.customer(name)
        people.append((customer_id, await town.pocket(customer_id)))
    for day in DAYS:
        await town.until(day)
        for customer_id, pocket in people:
            await town.deposit(customer_id, pocket, 10_000_00, draw.choice(("WIRE", "ACH")))
        for _ in range(20):
            payer, payee = draw.sample(people, 2)
            await town.transfer(*payer, *payee, draw.randrange(1_00, 900_00))


async def test_a_receiver_sees_everything_once_though_the_worker_is_killed(market_dsn, tmp_path):
    async with opened(market_dsn, tmp_path) as (bank, programs), receiving() as receiver:
        receiver.script = lambda request: programs.told(request, len(receiver.requests))
        await webhooks.create_subscription(
            bank.pool, bank.vault, Owner(PARTNER), url=receiver.url, events=PARTNER_KINDS,
            shared_secret=SECRET, now=wall_now(),
        )  # fmt: skip
        programs.start()
        try:
            await busy_week(bank)
            await webhooks.sequence(bank.pool, now=wall_now())
            last = await bank.pool.fetchval("SELECT max(partner_sequence) FROM told")
            async with asyncio.timeout(PATIENCE_SECONDS):
                while len({each.id for each in receiver.requests}) < last:
                    receiver.arrived.clear()
                    await receiver.arrived.wait()
        finally:
            print(len(receiver.requests), len({e.id for e in receiver.requests}), last, programs.kills, (tmp_path/"worker.log").read_text()[-3000:])
            for t in ("subscription_lane","courier"):
                print(await bank.pool.fetch(f"select * from {t}"))
            print(await bank.pool.fetch("select state, count(*) from delivery group by 1"))
            print(await bank.pool.fetch("select response_code, response_message, count(*) from delivery_attempt group by 1,2"))
            programs.kill()
        async with bank.pool.acquire() as conn:
            assert (await verify_bank(conn)).findings == ()
    events = {each.id: each.event for each in receiver.requests}
    times = Counter(each.id for each in receiver.requests)
    assert programs.kills == KILLS
    assert max(times.values()) > 1, "what was not written down was sent again, under its id"
    first_seen = [events[event_id]["sequence"] for event_id in dict.fromkeys(times)]
    assert first_seen == list(range(1, last + 1))
    assert [e["previous_sequence"] for e in events.values()] == list(range(last))
