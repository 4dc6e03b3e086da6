"""One simulation: a seed, a bank that is born, lived with and killed, and the oracles in the end."""

from __future__ import annotations

import asyncio
import shutil
import traceback
from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from random import Random
from uuid import UUID

import asyncpg

from billfold.data_keys.keys import DataKeys
from billfold.data_keys.kms import FileMasterKey
from billfold.events.kinds import PARTNER_KINDS
from billfold.migrations import runner
from billfold.platform.clock import ClockState, wall_now
from billfold.platform.crypto import Vault
from billfold.platform.database.business_clock import read_clock
from billfold.platform.database.connection import ensure_login
from billfold.platform.database.embedded import Server as PostgresServer
from billfold.platform.database.pool import APP_ROLE
from billfold.platform.settings.settings import Settings
from billfold.sandbox.routes.operations import build_sandbox_app
from billfold.verify.runner import verify_bank
from billfold.wiring.open_bank import open_bank
from simulation import oracles
from simulation.boundary import control, print_one_page
from simulation.counterparties.cards import CardNetwork
from simulation.counterparties.chain import WALLET, SimulatedChain
from simulation.counterparties.mail import MailServer
from simulation.counterparties.poison import DEAF_HOOK, Poison
from simulation.counterparties.rails import Carrier
from simulation.counterparties.stores import Stores
from simulation.counterparties.webhooks import Hooks
from simulation.customers import Client
from simulation.faults import SPELL_SECONDS, Faults, Plan
from simulation.loop import SimulationLoop
from simulation.members import MembersLife, found_teams
from simulation.postgres import Postgres
from simulation.processes import CARD_KEY, QUIET_POLL_SECONDS, Server, WorkServer, World, found

QUIET_SECONDS = 1800.0
"""Virtual time within which everything due must be done once faults have stopped."""
ANSWER_SECONDS = 2.0
"""Virtual time within which a request is answered on average, under whatever faults."""
HARM_SECONDS = 16.0
"""At most this virtual time passes between two deaths, sleeps or spells of an unavailable database."""
DEATHS, SLEEPS = 0.82, 0.06
"""How many of these are deaths, and how many sleeps."""
SLEEP_SECONDS = (2, 12, 40)
"""No claim lasts longer than the longest: a key's 10 seconds, a dispatcher's 20. Its locks hold up others as long."""
LINES, LINES_MAX, REQUESTS_PER_LINE = 6, 120, 10
"""Clients that send requests at the same time: at least, at most, and one more for so many requests."""
PLACES, LINES_PER_PLACE = 12, 3
"""Pockets at least, and one more for so many clients."""
LAST_DAY_SECONDS = 20.0
"""Virtual time for which faults go on after the clock has jumped a last time, and a customer's due work fails."""
_LAST_JUMP = "UPDATE clock SET business_anchor = business_anchor + interval '4 days'"
_KEY = bytes(range(32))
_HOOK = "https://receiver.example/hook"
_RAISED = "SELECT count(*) FROM event"
SERVER_SETTINGS = {"max_connections": "120", "deadlock_timeout": "1h", "synchronize_seqscans": "off"}


@dataclass
class Plans:
    """The size of a simulation. `rate` is the chance of a fault per statement and message; 0 has no deaths either."""

    seed: int
    commands: int = 200
    years: float = 0.1
    rate: float = 0.01
    plans: tuple[Plan, ...] = ()
    log: str | None = None


@dataclass
class Outcome:
    """The result of a simulation. `digest` is that of every statement and answer."""

    seed: int
    digest: str
    acknowledged: int
    deaths: int
    statements: int
    steps: int
    virtual_seconds: float
    failure: str | None
    faults: dict[str, int] = field(default_factory=dict)
    refused: dict[str, int] = field(default_factory=dict)


class Ground:
    """A founded bank, of which each simulation gets a copy."""

    def __init__(self, server: PostgresServer, folder: Path) -> None:
        self.server, self.folder = server, folder

    def prepare(self) -> None:
        """Migrate and found the bank that all seeds begin with."""
        build_sandbox_app()  # loads what every simulation needs
        print_one_page()
        control(SimulationLoop(Random(0)), Random(0))
        asyncio.run(self._prepare())

    async def _prepare(self) -> None:
        await ensure_login(self.server.dsn, APP_ROLE)
        dsn = await self.server.create_database("founded")
        conn = await asyncpg.connect(dsn)
        await runner.up(conn)
        await conn.close()
        self.credentials, self.market = await found(self.settings("founded"), dsn)
        async with open_bank(self.settings("founded"), dsn) as bank:
            partner_id = await bank.pool.fetchval("SELECT partner_id FROM partner")
            self.teams = await found_teams(bank, partner_id)

    def settings(self, name: str) -> Settings:
        """Return the settings of a bank whose files are in a folder of this name."""
        return replace(
            Settings(),
            state_dir=self.folder / name,
            seed=b"the seed of a simulated bank",
            encryption_key=_KEY,
            usage_limits=(("emails.recipient", 1_000_000),),
            card_processor_key=CARD_KEY,
        )

    def copy(self, name: str) -> str:
        """Return the address of a copy."""
        return asyncio.run(self.server.create_database(name, template="founded"))

    def drop(self, name: str) -> None:
        """Drop a copy, and its files."""
        shutil.rmtree(self.folder / name, ignore_errors=True)
        asyncio.run(self._drop(name))

    async def _drop(self, name: str) -> None:
        conn = await asyncpg.connect(self.server.dsn)
        await conn.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        await conn.close()


class Simulation:
    """A bank in one process, from its first request to the verdict."""

    def __init__(self, ground: Ground, plans: Plans, name: str) -> None:
        self.plans = plans
        self.loop = SimulationLoop(Random(f"order {plans.seed}"))
        self.random = Random(f"life {plans.seed}")
        dsn = ground.copy(name)
        control(self.loop, Random(f"secrets {plans.seed}"))
        self.postgres = Postgres(dsn.replace("//postgres@", f"//{APP_ROLE}@"), APP_ROLE)
        self.faults = Faults(self.loop, Random(f"faults {plans.seed}"), rate=0.0, plans=plans.plans)
        self.world = World(self.loop, self.postgres, self.faults, ground.settings(name), ground.market)
        self.serving = [Server(self.world, f"serve{n}") for n in (1, 2)]
        self.processes = [*self.serving, *(WorkServer(self.world, f"worker{n}") for n in (1, 2))]
        self.hooks = Hooks(self.random, self.faults)
        self.poison = Poison(ground.folder / name / "rails")
        self.stores = Stores(self.loop, self.random, self.faults, ground.folder / name / "files")
        self.mail = MailServer(self.random, self.faults, self.poison.apart)
        self.carrier = Carrier(self.loop, self.random, self.faults)
        self.model = oracles.Model()
        self.client = Client(self.serving, ground.credentials, self.faults, self.random)
        self.lines = min(max(LINES, plans.commands // REQUESTS_PER_LINE), LINES_MAX)
        places_max = max(PLACES, self.lines // LINES_PER_PLACE)
        self.teams = ground.teams
        self.life = MembersLife(self.client, self.model, self.random, lines=self.lines, places_max=places_max)
        self.life.cards, self.life.wallets = {}, {}
        self.life.chain = SimulatedChain(self.random, self.faults)
        self.life.network = CardNetwork(self.client, self.model, ground.folder / name / "rails", self._now)
        self.advance_each = max(1, int(plans.commands / max(1.0, plans.years * 252)))

    def run(self) -> Outcome:
        """Live through it and judge it."""
        self.postgres.open()
        failure = None
        with open(self.plans.log or "/dev/null", "w") as log:  # noqa: PTH123 - also a device
            if self.plans.log:
                self.postgres.log = lambda line: print(f"{self.loop.now:.3f} {line}", file=log)
            try:
                self.loop.run_until_complete(self._live())
                self._judge()
            except Exception as error:  # noqa: BLE001 - whatever is not foreseen is a finding
                failure = f"{type(error).__name__}: {error}"
                if not isinstance(error, oracles.WrongBank):
                    failure += "\n" + traceback.format_exc(limit=-3)
        self.postgres.let_go()
        return Outcome(
            self.plans.seed,
            self.postgres.trace.hexdigest(),
            self.client.acknowledged.total(),
            sum(each.deaths for each in self.processes),
            self.postgres.statements,
            self.loop.steps,
            self.loop.now,
            failure,
            dict(sorted(self.faults.happened.items())),
            dict(sorted(self.life.refused.items())),
        )

    async def _live(self) -> None:
        origin = self.world.settings.customer_origin
        self.postgres.call(self.life.sign_in(self.postgres.monitor, self.teams, origin))
        chain = self.loop.create_task(self.life.chain.run())
        for each in self.processes:
            each.start()
        raised = self.postgres.call(self.postgres.monitor.fetchval(_RAISED))
        self.hooks.receiver.raised_before = raised
        await self._subscribe(_HOOK)
        self.poison.apart |= {await self._subscribe(DEAF_HOOK), await self.life.join_apart()}
        self.poison.put_files()
        self.faults.rate = self.plans.rate
        adversary = self.loop.create_task(self._harm())
        try:
            # A spell keeps everybody waiting, however few requests there are.
            async with asyncio.timeout(2 * SPELL_SECONDS[-1] + self.plans.commands * ANSWER_SECONDS):
                await asyncio.gather(*(self._line() for _ in range(self.lines)))
                await self.life.network.settle()
                await self.life.network.wait_for_reports()
        except TimeoutError:
            raise oracles.WrongBank(f"not answered: {self.client.waiting}") from None
        self.poison.is_active = True
        self.postgres.call(self.postgres.monitor.execute(_LAST_JUMP))
        await asyncio.sleep(LAST_DAY_SECONDS)
        adversary.cancel()
        self.faults.end()
        await self._settle_down()
        chain.cancel()

    async def _subscribe(self, url: str) -> UUID:
        policy = {
            "retry_on_status_codes": [],
            "backoff_coefficient": 1,
            "maximum_attempts": 20,
            "initial_interval_seconds": 30,
            "maximum_interval_seconds": 30,
        }
        kinds = (
            list(PARTNER_KINDS)
            if url == _HOOK
            else [each for each in PARTNER_KINDS if each.startswith("transfers.wire.")]
        )
        body = {"url": url, "events": kinds, "shared_secret": "s" * 32, "retry_policy": policy}
        return UUID((await self.client.ask("POST", "/api/v1/subscriptions/", body)).body["id"])

    async def _line(self) -> None:
        while (done := self.client.acknowledged.total()) < self.plans.commands:
            if done // self.advance_each > self.life.advanced:
                self.life.advanced += 1
                await self.life.advance()
            await self.life.step()

    async def _harm(self) -> None:
        """Kill processes, put them to sleep, and let the database be unavailable, at random instants."""
        soon = 1.0
        while self.plans.rate:
            await asyncio.sleep(self.random.random() * soon)
            victim = self.random.choice(self.processes)
            luck = self.random.random()
            if luck < DEATHS:
                victim.kill()
                await asyncio.sleep(self.random.random() * 2)
                victim.start()
            elif luck < DEATHS + SLEEPS and victim.process is not None:
                victim.process.sleeps_until = self.loop.now + self.random.choice(SLEEP_SECONDS)
                self.faults.happened["process sleeps"] += 1
            else:
                self.faults.begin_spell()
            soon = HARM_SECONDS

    async def _settle_down(self) -> None:
        """Wait until nothing is due. Raises WrongBank if it takes too long."""
        until, self.world.poll_seconds = self.loop.now + QUIET_SECONDS, QUIET_POLL_SECONDS
        while True:
            await asyncio.sleep(5)
            left = self.postgres.call(oracles.late(self.postgres.monitor, self._now(), self.poison.apart))
            if files := self.carrier.under_way + self.poison.files_left():
                left["files to the bank"] = files
            if unfinished := self.life.chain.unfinished:
                left["transactions of the chain"] = unfinished
            if not left:
                return
            if self.loop.now > until:
                raise oracles.WrongBank(f"{QUIET_SECONDS:.0f} seconds after the last fault there are still {left}")

    def _now(self) -> datetime:
        clock = self.postgres.call(read_clock(self.postgres.monitor))
        assert isinstance(clock, ClockState)
        return clock.at(wall_now())

    async def _check_chain(self) -> None:
        addresses = {address.lower(): pocket for pocket, address in self.life.wallets.items()}
        arrived, paid = Counter[str](), Counter[tuple[str, int]]()
        for _, each in self.life.chain.transfers:
            if each.sender == WALLET.lower():
                paid[each.recipient, each.units] += bool(each.units)
            else:
                arrived[addresses[each.recipient]] += each.units
        payees = {str(team.customer): team.address for team in self.teams}
        await oracles.check_chain(self.postgres.monitor, arrived, paid, payees)

    def _judge(self) -> None:
        call = self.postgres.call
        for process in self.processes:
            process.kill()
            process.deaths -= 1
        monitor = self.postgres.monitor
        call(oracles.check_money(monitor, self.model))
        call(oracles.check_nothing_for_free(monitor))
        call(self.hooks.receiver.check(monitor))
        call(self.mail.check(monitor))
        call(self.life.network.check(monitor, self._now()))
        call(self._check_chain())
        call(self.stores.check(monitor))
        self.poison.check()
        call(oracles.check_reports(monitor, self.model))
        vault = Vault(_KEY)
        keys = DataKeys(FileMasterKey(vault))
        report = call(verify_bank(monitor, market=self.world.market, vault=vault, data_keys=keys))
        if not report.is_clean:
            raise oracles.WrongBank(f"verify: {report.findings[:3]}")
        self.loop.drop_done()
        if self.loop.errors:
            raise oracles.WrongBank(f"unhandled: {self.loop.errors[0]}")
