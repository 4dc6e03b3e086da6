"""A year of customers: a seeded history in memory and in Postgres at once, with the documents of each month.

Customers act at awkward instants of every day: around cut-offs, at midnight, in the repeated hour and next to the
missing one. Postgres must respond like the bank in memory.
"""

from contextlib import asynccontextmanager
from datetime import UTC, date, datetime, time, timedelta
from uuid import UUID

from tests.simulation.life import KINDS, WEEKS, Life, WalkTo
from tests.simulation.memory_bank import MemoryBank
from tests.simulation.on_chains import PATH
from tests.support.apps import lend_partner_app, take_back
from tests.support.whole_bank import PARTNER, SEED, VAULT, close_bank, open_bank, opened
from tests.support.world import PartnerApi, new_partner

from billfold.bills.store import CalendarOverride, save_override
from billfold.ledger.types import Origin
from billfold.platform.dates import ET, et_instant
from billfold.platform.errors import BillfoldError
from billfold.platform.ids import command_id, derive
from billfold.reports.requests.types import FINISHED_JOB
from billfold.reports.statements.store import Month
from billfold.reports.statements.worker import StatementMaker
from billfold.reports.tax.worker import TaxFormMaker
from billfold.sandbox.chain.faucet import DEPOSIT_XPUB
from billfold.sandbox.control.clock_stepper import ClockStepper
from billfold.treasury.market_log import market_change

OWN = (PARTNER, UUID("8f3b6f60-0000-4000-8000-00000000aaab"), UUID("8f3b6f60-0000-4000-8000-00000000aaac"))
ONE_DAY = timedelta(days=1)
CUSTOMERS_PER_STEP = 10
"""Of so many customers one does something each day, at least one in all."""
HOURS = (
    *(time(0), time(0, 0, 1), time(1, 30), time(1, 30, fold=1), time(3), time(6, 30), time(7, 59, 59), time(8, 30)),
    *(time(9, 15), time(12), time(14, 59, 59), time(15), time(16, 59, 59), time(17), time(18, 31), time(20)),
    *(time(23, 30), time(23, 59, 59)),
)
NAMES = ("株式会社みずうみ 銀行", "Ångström & Søn ApS", "شركة البحيرة", "O'Neil, =SUM(A1) \u202e LLC", "N" * 120)
"""Some customers are not called what one expects."""


class LivedYear:
    """Lives from some days before a year until its tax forms are made."""

    def __init__(self, bank, *, seed, customers, first_day, year):
        self.bank, self.first_day = bank, first_day
        self.last_day = date(year + 1, 1, 15)
        self.clock = ClockStepper(bank)
        memory = MemoryBank(bank.market, bank.calendars, bank.terms, seed=SEED, now=opens_at(first_day))
        timeless = [each for each in KINDS if each[0] not in {"minutes", "to_morning", "week"}]
        self.life = Life(memory, seed, customers=customers, files=False, kinds=timeless)
        self.steps = 0

    async def found(self):
        """Enrol every customer; each opens a Pocket and funds it."""
        self.life.bank.submit(self.life.found())
        for number in range(self.life.wanted):
            name = NAMES[number] if number < len(NAMES) else f"Customer {number}"
            customer = derive(b"year", command_id("year", str(number)), 0)
            await self._live(self.life.enrol(customer, name))
            weeks = self.life.random.choice(WEEKS)
            outcome = await self._live(self.life.open_pocket(customer, weeks=weeks, reinvest=weeks))
            await self._live(self.life.receive_money(opened(customer, outcome), self.life._cents()))

    async def days(self):
        """Yield every day as it ends; of a month that ended the statements are made, of the year the forms."""
        for number in range((self.last_day - self.first_day).days + 1):
            day = self.first_day + number * ONE_DAY
            if day.day == 1:
                await self._walk(Month.of(et_instant(day, 0)).previous.due_at)
                await StatementMaker()(self.bank)
                await TaxFormMaker()(self.bank)
            await self._day(day)
            yield day
        await self._walk(et_instant(self.last_day + ONE_DAY, 12))
        assert await TaxFormMaker()(self.bank) > 0

    async def _day(self, day):
        wanted = max(1, self.life.wanted // CUSTOMERS_PER_STEP)
        hours = sorted(
            self.life.random.choices(HOURS, k=min(wanted, 6)), key=lambda hour: (hour.replace(fold=0), hour.fold)
        )
        for number in range(wanted):
            if number < len(hours):
                at = datetime.combine(day, hours[number], tzinfo=ET).astimezone(UTC)
                await self._walk(max(at, self.life.bank.now))
            step = self.life.draw()
            await self._live(step)

    async def _walk(self, to):
        self.life.live(WalkTo(to))
        await self.clock.set_to(to)

    async def _live(self, step):
        self.steps += 1
        expected = self.life.live(step)
        try:
            answer = await self.bank.engine.submit(step)
        except BillfoldError as refused:
            if not isinstance(expected, BillfoldError):
                raise
            assert (refused.code, refused.detail) == (expected.code, expected.detail), step
            return None
        assert answer.outcome == expected.outcome, step
        return answer.outcome


def opens_at(day):
    return et_instant(day, time(9))


@asynccontextmanager
async def open_before(dsn, first_day, closed_on):
    """A bank as it opens on a day, at a partner's desk: its operator knows of a day that will be closed."""
    starts_at = opens_at(first_day)
    founded = await open_bank(dsn, clock_start=starts_at)
    closed = CalendarOverride(closed_on, "closed", None, "closed", "Mourning")
    async with founded.pool.acquire() as conn, conn.transaction(), market_change(conn, VAULT, Origin.operator()):
        await save_override(conn, closed)
    await close_bank(founded)
    bank = await open_bank(dsn, clock_start=starts_at)
    # Who would answer from outside speaks in this life; that a report is finished the bank says itself.
    bank.job_runners = {FINISHED_JOB: bank.job_runners[FINISHED_JOB]}
    await bank.pool.execute("INSERT INTO wallet_xpub (xpub, derivation_path) VALUES ($1, $2)", DEPOSIT_XPUB, PATH)
    app = lend_partner_app(bank)
    desk = PartnerApi(bank, app, await new_partner(bank, known_ids=OWN))
    try:
        yield desk
    finally:
        await desk.close()
        await take_back(app)
        await close_bank(bank)
