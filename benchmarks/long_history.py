"""Two pockets alike but for their past: ten transactions, and a million.

The past is lived through, not faked: the clock walks from day to day, payments arrive before
the market opens, are invested when it does, and every row is written by the engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import time
from typing import Any
from uuid import UUID

import msgspec

from benchmarks.dataset import (
    Location,
    OpenBank,
    create_bank,
    create_customers,
    customer_of,
    deposit,
    submit_commands,
    vacuum_and_checkpoint,
)
from benchmarks.load_generator import Credentials
from benchmarks.partner_setup import create_partner
from benchmarks.worker_processes import Worker
from billfold.platform.dates import et_date, et_instant
from billfold.sandbox.clock.stepper import ClockStepper

SHORT, LONG = 0, 1
"""The numbers of the two customers."""
SHORT_ROWS = 10

_DAYS = 240
_WEEKS = 4
_BEFORE_OPENING, _AFTER_OPENING = time(7), time(10)
_CENTS = 1_000_00
_LONG_BATCH = 2_000
_ROWS = """
SELECT (SELECT count(*) FROM transaction WHERE customer_id = $1),
       (SELECT count(*) FROM posting WHERE customer_id = $1),
       (SELECT count(*) FROM snapshot WHERE customer_id = $1),
       (SELECT count(*) FROM account WHERE customer_id = $1 AND kind = 'lot' AND live
           AND credits > debits)
"""


class PocketHistory(msgspec.Struct, frozen=True):
    """What a pocket has behind it, in rows."""

    transactions: int
    ledger_rows: int
    snapshots: int
    live_lots: int


class HistoryWorkload:
    """Lives through the past of both pockets."""

    def __init__(self, opened: OpenBank) -> None:
        self._opened = opened
        self._bank = opened.bank

    async def prepare(self, task: tuple[str, int]) -> Any:
        """Live (rows of the long past), tell both pasts, or make the partner."""
        verb, number = task
        if verb == "create":
            await self._create(number)
            return None
        if verb == "partner":
            credentials: Credentials = await create_partner(self._bank)
            return credentials
        return [
            PocketHistory(*(await self._bank.pool.fetchrow(_ROWS, customer_of(nth)) or ())) for nth in (SHORT, LONG)
        ]

    async def run(self) -> None:
        """Nothing is timed."""

    async def close(self) -> None:
        """Stop the engine."""
        await self._opened.close()

    async def _create(self, rows: int) -> None:
        portals = await create_customers(self._bank, (SHORT, LONG), weeks=_WEEKS)
        days = min(_DAYS, rows // SHORT_ROWS)
        shares = shared_out(rows, days)
        # The short past is spread over the last weeks, so that both hold the same bills.
        short_days = set(range(days - 2 * SHORT_ROWS, days, 2)) if days > 2 * SHORT_ROWS else None
        for day, share in enumerate(shares):
            await self._advance_to(_BEFORE_OPENING)
            await self._receive(LONG, portals[LONG], share, day=day)
            if short_days is None or day in short_days:
                await self._receive(SHORT, portals[SHORT], 1, day=day)
        await self._advance_to(_AFTER_OPENING)
        await vacuum_and_checkpoint(self._bank.pool)

    async def _advance_to(self, hour: time) -> None:
        day = self._bank.calendars.next_settlement_day(et_date(await self._bank.now()))
        await ClockStepper(self._bank).set_to(et_instant(day, hour))

    async def _receive(self, nth: int, portal: UUID, count: int, day: int) -> None:
        await submit_commands(self._bank, [deposit(nth, portal, _CENTS, occasion=f"{day}.{n}") for n in range(count)])


def shared_out(whole: int, parts: int) -> Sequence[int]:
    """Divide a number into as even parts as can be."""
    return [whole * (n + 1) // parts - whole * n // parts for n in range(parts)]


async def open_history_workload(location: Location) -> HistoryWorkload:
    """Found the bank of an empty database."""
    return HistoryWorkload(await create_bank(location, batch_limit=_LONG_BATCH))


def history_process(location: Location) -> Worker:
    """Return the workload in a process of its own."""
    return Worker(open_history_workload, location=location)
