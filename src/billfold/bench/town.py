"""A bank full of people to measure with: founded, funded, and the same on every machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import time
from uuid import UUID

from billfold.domain.business_days import load_calendars
from billfold.domain.tbills.reads import load_market
from billfold.engine.bank import Bank
from billfold.engine.batch import Engine
from billfold.engine.founding import enrol_house, lay_foundation
from billfold.engine.stepping import Stepping
from billfold.flows.command import Command, Terms
from billfold.flows.enrol import EnrolCustomer
from billfold.flows.pockets import OpenPocket
from billfold.flows.receive import ReceiveMoney
from billfold.kit.clock import wall_now
from billfold.kit.collector import calm_collector
from billfold.kit.crypto import Vault
from billfold.kit.dates import et_date, et_instant
from billfold.kit.db import create_pool
from billfold.kit.ids import command_id, derive
from billfold.kit.paging import Pager
from billfold.kit.settings import Settings

SEED = b"the seed of every benchmarked bank"
PARTNER = derive(SEED, command_id("bench", "partner"), 0)
WEEKS = 26
"""The strategy of everybody: no bill matures while the clock is stepped from day to day."""
DEPOSIT_CENTS = 400_000_00
TEN_O_CLOCK = time(10)

_CALLER = "bench"
_AT_ONCE = 20_000
_CONNECTIONS = 8


def customer_of(nth: int) -> UUID:
    """Return the id of a customer by his number."""
    return derive(SEED, command_id(_CALLER, f"customer:{nth}"), 0)


def pocket_of(nth: int) -> UUID:
    """Return the id of the pocket of customer number `nth`."""
    return derive(SEED, command_id(_CALLER, f"customer:{nth}"), 1)


async def open_bank(dsn: str, *, lanes: int = 2, batch_limit: int = 300) -> Bank:
    """Return the running bank of a database, founded if it was not. Close with `close_bank`."""
    settings = replace(Settings(), lanes=lanes, batch_limit=batch_limit, seed=SEED)
    pool = await create_pool(dsn, min_size=lanes + 1, max_size=_CONNECTIONS)
    async with pool.acquire() as conn:
        await lay_foundation(
            conn,
            seed=SEED,
            environment="sandbox",
            clock_start=settings.clock_start,
            wall=wall_now(),
        )
        calendars = await load_calendars(conn)
        market = await load_market(conn, calendars)
    terms = Terms(aum_fee_bps=settings.aum_fee_bps, routing_number=settings.bank_routing_number)
    engine = Engine(
        pool,
        market=market,
        calendars=calendars,
        terms=terms,
        seed=SEED,
        test_clock=True,
        lanes=lanes,
        batch_limit=batch_limit,
    )
    await engine.start()
    bank = Bank(
        pool=pool,
        engine=engine,
        market=market,
        calendars=calendars,
        terms=terms,
        seed=SEED,
        settings=settings,
        pager=Pager(SEED),
        vault=Vault(SEED[:32]),
    )
    await enrol_house(bank)
    calm_collector()
    return bank


async def close_bank(bank: Bank) -> None:
    """Stop the engine and let go of the database."""
    await bank.engine.stop()
    await bank.pool.close()


async def submit_everything(bank: Bank, commands: Sequence[Command]) -> list[dict[str, object]]:
    """Carry out commands of which none may be refused; return their outcomes."""
    outcomes = []
    for first in range(0, len(commands), _AT_ONCE):
        for answer in await bank.engine.submit_all(commands[first : first + _AT_ONCE]):
            if isinstance(answer, Exception):
                raise answer
            outcomes.append(answer.outcome)
    return outcomes


async def settle(bank: Bank, numbers: Sequence[int]) -> dict[int, UUID]:
    """Enrol customers and open a pocket each; return their portals by number."""
    await submit_everything(
        bank,
        [
            EnrolCustomer(
                caller=_CALLER,
                key=command_id("enrol", str(nth)),
                customers=(customer_of(nth),),
                partner_id=PARTNER,
                role="customer",
                type="BUSINESS",
                name=f"Customer {nth}",
                profile={},
            )
            for nth in numbers
        ],
    )
    opened = await submit_everything(
        bank,
        [
            OpenPocket(
                caller=_CALLER,
                key=command_id("open", str(nth)),
                customers=(customer_of(nth),),
                partner_id=PARTNER,
                name="Reserve",
                deposit_weeks=WEEKS,
                reinvestment_weeks=WEEKS,
                pocket_id=pocket_of(nth),
            )
            for nth in numbers
        ],
    )
    return {
        nth: UUID(str(outcome["portal_id"])) for nth, outcome in zip(numbers, opened, strict=True)
    }


def deposit(nth: int, portal: UUID, cents: int, occasion: str) -> ReceiveMoney:
    """Return a wire that arrives for customer `nth`; each occasion is another one."""
    return ReceiveMoney(
        caller=_CALLER,
        key=command_id(f"deposit:{occasion}", str(nth)),
        customers=(customer_of(nth),),
        rail="WIRE",
        portal_id=portal,
        pocket_id=pocket_of(nth),
        amount=cents,
        description="Wire",
        details={"wire_id": str(command_id(f"wire:{occasion}", str(nth)))},
    )


async def next_morning(bank: Bank) -> None:
    """Walk the clock to ten in the morning of the next business day, doing all that is due."""
    day = bank.calendars.next_settlement_day(et_date(await bank.now()))
    await Stepping(bank).set_to(et_instant(day, TEN_O_CLOCK))
