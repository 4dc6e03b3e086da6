"""The customers that benchmarks work on: enrolled, funded, and the same on every machine."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import time
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

import msgspec

from billfold.accounts.customers.commands import EnrolCustomer
from billfold.accounts.pockets.commands import OpenPocket
from billfold.cli.python_process import tune_garbage_collector
from billfold.ledger.bank import Bank
from billfold.ledger.commands import Command
from billfold.ledger.types import Rail
from billfold.payments.deposits.rules import ReceiveMoney
from billfold.payments.on_us.commands import TransferOnUs, TransferOrder
from billfold.platform.database.connection import Pool
from billfold.platform.database.pool import APP_ROLE
from billfold.platform.dates import et_date, et_instant
from billfold.platform.ids import command_id, derive
from billfold.platform.settings.settings import Settings
from billfold.sandbox.control.clock_stepper import ClockStepper
from billfold.wiring import open_bank as wiring_open_bank

SEED = b"the seed of every benchmarked bank"
PARTNER = derive(SEED, command_id("bench", "partner"), 0)
WEEKS = 26
"""The strategy of everybody: no bill matures while the clock is stepped from day to day."""
DEPOSIT_CENTS = 400_000_00
TEN_O_CLOCK = time(10)

OwnPocket = tuple[int, UUID]
"""The number of a customer, and the id of a pocket of theirs."""

_CALLER = "bench"
_CHUNK = 20_000


def customer_of(nth: int) -> UUID:
    """Return the id of a customer by its number."""
    return derive(SEED, command_id(_CALLER, f"customer:{nth}"), 0)


def pocket_of(nth: int) -> UUID:
    """Return the id of the pocket of customer number `nth`."""
    return derive(SEED, command_id(_CALLER, f"customer:{nth}"), 1)


class Location(msgspec.Struct, frozen=True):
    """The location of a bank: its database and the folder of its keys."""

    dsn: str
    state_dir: Path

    def settings(self, **changes: Any) -> Settings:
        """Return the settings of a default installation with some replaced."""
        return replace(Settings(), state_dir=self.state_dir, database_url=self.dsn, seed=SEED, **changes)


class OpenBank(NamedTuple):
    """A running bank, and what ends it."""

    bank: Bank
    stack: AsyncExitStack

    async def close(self) -> None:
        """Stop the engine and let go of the database."""
        await self.stack.aclose()


async def create_bank(location: Location, **changes: Any) -> OpenBank:
    """Found the bank of a migrated database and open it."""
    await wiring_open_bank.initialize_database(location.settings(), location.dsn)
    return await open_bank(location, **changes)


async def open_bank(location: Location, **changes: Any) -> OpenBank:
    """Open a founded bank under the settings of a default installation, some replaced."""
    stack = AsyncExitStack()
    bank = await stack.enter_async_context(wiring_open_bank.open_bank(location.settings(**changes), location.dsn))
    tune_garbage_collector()
    return OpenBank(bank, stack)


async def submit_commands(bank: Bank, commands: Sequence[Command]) -> list[dict[str, object]]:
    """Carry out commands of which none may be refused; return their outcomes."""
    outcomes = []
    for first in range(0, len(commands), _CHUNK):
        for answer in await bank.engine.submit_all(commands[first : first + _CHUNK]):
            if isinstance(answer, Exception):
                raise answer
            outcomes.append(answer.outcome)
    return outcomes


async def create_customers(bank: Bank, numbers: Iterable[int], *, weeks: int = WEEKS) -> dict[int, UUID]:
    """Enrol customers and open a pocket each; return their portals by number."""
    numbers = list(numbers)
    await submit_commands(
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
                profile=None,
            )
            for nth in numbers
        ],
    )
    portals = await open_pockets(bank, [(nth, pocket_of(nth)) for nth in numbers], weeks=weeks)
    return {nth: portals[pocket_of(nth)] for nth in numbers}


async def open_pockets(bank: Bank, pockets: Sequence[OwnPocket], *, weeks: int = WEEKS) -> dict[UUID, UUID]:
    """Open pockets; return the portal of each."""
    commands = [
        OpenPocket(
            caller=_CALLER,
            key=command_id("open", str(pocket_id)),
            customers=(customer_of(nth),),
            partner_id=PARTNER,
            name="Reserve",
            deposit_weeks=weeks,
            reinvestment_weeks=weeks,
            pocket_id=pocket_id,
        )
        for nth, pocket_id in pockets
    ]
    opened = await submit_commands(bank, commands)
    return {pocket: UUID(str(outcome["portal_id"])) for (_, pocket), outcome in zip(pockets, opened, strict=True)}


def deposit(nth: int, portal: UUID, cents: int, occasion: str, *, pocket_id: UUID | None = None) -> ReceiveMoney:
    """Return a wire that arrives for customer `nth`, by default in the first pocket; each occasion is another one."""
    pocket_id = pocket_id or pocket_of(nth)
    return ReceiveMoney(
        caller=_CALLER,
        key=command_id(f"deposit:{occasion}", str(pocket_id)),
        customers=(customer_of(nth),),
        rail=Rail.WIRE,
        portal_id=portal,
        pocket_id=pocket_id,
        amount=cents,
        description="Wire",
        details={"wire_id": str(command_id(f"wire:{occasion}", str(pocket_id)))},
    )


def transfer(key: UUID, payer: OwnPocket, payee: OwnPocket, cents: int) -> TransferOnUs:
    """Return a transfer from one pocket to another."""
    return TransferOnUs(
        caller=_CALLER,
        key=key,
        customers=(customer_of(payer[0]), customer_of(payee[0])),
        transfer_id=None,
        type="PEER_TO_PEER",
        from_pocket_id=payer[1],
        to_pocket_id=payee[1],
        amount=cents,
        partner_id=PARTNER,
        order=TransferOrder(description="Invoice"),
    )


async def advance_to_next_morning(bank: Bank) -> None:
    """Walk the clock to ten in the morning of the next business day, doing all that is due."""
    day = bank.calendars.next_settlement_day(et_date(await bank.now()))
    await ClockStepper(bank).set_to(et_instant(day, TEN_O_CLOCK))


async def vacuum_and_checkpoint(pool: Pool) -> None:
    """Leave the tables as a quiet night would: counted, cleared, and on the disk.

    Only the owner may: the application's role is laid down for it.
    """
    async with pool.acquire() as conn:
        await conn.execute("SET ROLE NONE")
        try:
            await conn.execute("VACUUM ANALYZE", timeout=None)
            await conn.execute("CHECKPOINT", timeout=None)
        finally:
            await conn.execute(f"SET ROLE {APP_ROLE}")
