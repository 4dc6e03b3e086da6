"""QuickFIX/J, an engine that nobody here wrote, as the dealer: gaps, resends, duplicates, logouts, the next day."""

import asyncio
from datetime import date
from pathlib import Path

import pytest
from tests.support.maven import jars_of
from tests.support.sandbox_process import free_ports
from tests.support.whole_bank import close_bank, expect_clean, open_bank
from tests.trading.fix.simulated_desk import SimulatedDesk, until

from billfold.platform.dates import et_instant
from billfold.platform.settings.trading_desk import DealerSession, PriceType
from billfold.sandbox.control.clock_stepper import ClockStepper
from billfold.trading.fix.store import list_sessions

SOURCE = Path(__file__).with_name("QuickFixDealer.java")
MONDAY, TUESDAY = date(2025, 6, 2), date(2025, 6, 3)


@pytest.fixture(scope="module")
def quickfix(tmp_path_factory):
    """The folder of the library's jars."""
    return jars_of("org.quickfixj", "quickfixj-all", "2.3.2", tmp_path_factory)


class QuickFixDealer:
    """The process of the dealer, and the lines that it has printed."""

    def __init__(self, process):
        self.process, self.lines = process, []
        self.reading = asyncio.create_task(self._read())

    async def _read(self):
        while line := await self.process.stdout.readline():
            self.lines.append(line.decode().rstrip())

    async def do(self, what):
        """Let it do something, and wait until it has."""
        before = self.lines.count(f"did {what}")
        self.process.stdin.write(f"{what}\n".encode())

        async def done():
            return self.lines.count(f"did {what}") > before

        await until(done)

    def seen(self, way, kind):
        """Return the messages of a type that it received (`in`) or sent (`out`)."""
        return [line for line in self.lines if line.startswith(f"{way} ") and f"|35={kind}|" in line]

    async def close(self):
        self.process.kill()
        await self.process.wait()
        self.reading.cancel()


@pytest.fixture
async def dealer(quickfix, port):
    words = ["java", "-XX:TieredStopAtLevel=1", "-cp", f"{quickfix}/*", str(SOURCE), str(port)]
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*words, stdin=pipe, stdout=pipe, stderr=asyncio.subprocess.DEVNULL)
    running = QuickFixDealer(process)

    async def ready():
        return "ready" in running.lines

    await until(ready, 60)
    yield running
    await running.close()


@pytest.fixture
def port():
    return free_ports(1)[0]


@pytest.fixture
async def bank(bank_dsn, port):
    session = DealerSession("quick", "BANK", "DEALER", "127.0.0.1", port, PriceType.PRICE, is_plain=True)
    opened = await open_bank(bank_dsn, dealers=("quick",), dealer_sessions=(session,))
    yield opened
    await close_bank(opened)


async def test_a_foreign_engine_and_the_bank_agree_through_gaps_resends_duplicates_logouts_and_days(
    dealer, bank, new_holder
):
    desk, holder = SimulatedDesk(bank, None), await new_holder()

    async def traded():
        await holder.deposit(250_000_00)
        return await placed(desk)

    async with desk.routing():
        await desk.is_on(MONDAY)
        await desk.reaches(await traded(), "FILLED")
        await through_gaps(desk, dealer, traded)
        await through_a_logout(desk, dealer, traded)
    await bank.pool.execute("UPDATE dealer_session SET next_in = next_in - 3")  # the last three are repeated
    async with desk.routing():
        await desk.is_on(MONDAY)

        async def repeated():
            return [line for line in dealer.seen("out", "8") if "|43=Y|" in line]

        await until(repeated)
        await ClockStepper(bank).set_to(et_instant(TUESDAY, 9))
        await desk.is_on(TUESDAY)
        await desk.reaches(await traded(), "FILLED", 20)
    [state] = await list_sessions(bank.pool)
    assert (state.session_day, state.next_out < 9) == (TUESDAY, True)
    await expect_agreement(desk, dealer, 5)


async def placed(desk):
    [order] = await desk.place()
    return order


async def through_gaps(desk, dealer, traded):
    """Numbers are missing on the bank's side, then on the dealer's."""
    assert "|141=Y|" in dealer.seen("in", "A")[0]
    await dealer.do("gap")
    await desk.reaches(await traded(), "FILLED")
    assert dealer.seen("in", "2")
    await dealer.do("forget")  # nothing is sent again: the order that the gap took along is decided again
    await desk.reaches(await traded(), "REJECTED")
    await desk.reaches(await placed(desk), "FILLED")
    assert any("|43=Y|" in line and "|123=Y|" in line for line in dealer.seen("in", "4"))


async def through_a_logout(desk, dealer, traded):
    """The dealer logs out while it works an order, and fills it after the next logon."""
    await dealer.do("hold")
    waiting = await desk.reaches(await traded(), "WORKING")
    await dealer.do("logout")
    await dealer.do("logon")
    await desk.is_on(MONDAY)
    await dealer.do("fill")
    await desk.reaches(waiting, "FILLED")


async def expect_agreement(desk, dealer, count):
    """Compare the dealer's log with the bank's books."""
    first_time = [line for line in dealer.seen("out", "8") if "|150=F|" in line and "|43=Y|" not in line]
    orders, filled = (
        sorted(line.split("|11=")[1][:36] for line in each) for each in (dealer.seen("in", "D"), first_time)
    )
    assert orders == filled == sorted(str(each.order_id) for each in await desk.executions())
    assert len(set(orders)) == len(orders) == count
    assert not dealer.seen("out", "3")
    assert not await desk.open_messages()
    await expect_clean(desk.bank)
