"""The open bank that routes, workers and operator commands share."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

import structlog

from billfold.bills.rules.market import Market
from billfold.ledger.context import BankPolicy
from billfold.ledger.directory import Directory
from billfold.ledger.engine.engine import Engine
from billfold.ledger.types import ScheduledJob
from billfold.platform.calendars import Calendars
from billfold.platform.clock import wall_now
from billfold.platform.crypto import Vault
from billfold.platform.database.connection import Connection, Db, Pool
from billfold.platform.database.distribution import one_snapshot
from billfold.platform.database.paging import Pager
from billfold.platform.database.replica import Replica
from billfold.platform.database.shortage import error_summary
from billfold.platform.database.usage_counts import count_usage
from billfold.platform.ids import command_id, derive
from billfold.platform.settings.settings import Settings
from billfold.platform.settings.usage_limits import USAGE_LIMITS

log = structlog.get_logger(__name__)


class BackgroundTasks:
    """The tasks of one owner; each is kept until it ends."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, work: Coroutine[None, None, None]) -> None:
        """Run a coroutine in the background."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._end)

    def _end(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.warning("background_task_failed", error=error_summary(error))

    async def close(self) -> None:
        """Wait until all have ended, however they end."""
        await asyncio.gather(*self._tasks, return_exceptions=True)


Port = TypeVar("Port")


class Ports:
    """External systems and objects that a process shares, found by type: `ports[FileStore]`.

    A part declares its port as a class. Only the wiring knows which class provides it.
    """

    def __init__(self) -> None:
        self._providers: dict[type, Any] = {}

    def __getitem__(self, port: type[Port]) -> Port:
        """Return the provider of a port. Raises KeyError when none is set."""
        found: Port = self._providers[port]
        return found

    def get(self, port: type[Port]) -> Port | None:
        """Return the provider of a port, or None."""
        return self._providers.get(port)

    def __setitem__(self, port: type[Port], provider: Port | None) -> None:
        if provider is None:
            self._providers.pop(port, None)
        else:
            self._providers[port] = provider

    def copy(self) -> Ports:
        """Return the same providers, some of which can then be replaced."""
        other = Ports()
        other._providers.update(self._providers)
        return other


JobRunner = Callable[["Bank", ScheduledJob], Awaitable[None]]
"""Runs one scheduled job. Running it twice changes nothing the second time."""
JobRunners = Mapping[str, JobRunner]
"""The runner of each kind of job. Jobs of other kinds are left to other processes."""


def bank_customer_id(seed: bytes) -> UUID:
    """Return the id of the customer that is the bank itself, derived from the seed."""
    return derive(seed, command_id("founding", "house"), 0)


@dataclass(kw_only=True, eq=False)
class Bank:
    """Engine, market, calendars, keys and providers of one process."""

    pool: Pool
    engine: Engine
    market: Market
    terms: BankPolicy
    seed: bytes
    settings: Settings
    pager: Pager
    vault: Vault
    job_runners: JobRunners
    ports: Ports
    replica: Replica | None = None

    def __post_init__(self) -> None:
        self.own_id = bank_customer_id(self.seed)
        """The id of the customer that is the bank itself."""
        self.directory = Directory(self.pool)
        self.background = BackgroundTasks()
        self.export_turn = asyncio.Lock()
        """Held while part of a file of rows is being made; one file at a time."""

    def stale_bps(self, at: datetime) -> int:
        """Return the further cost of a sale at an instant, for prices that are too old."""
        return 0 if self.market.is_current(at) else self.terms.stale_haircut_bps

    @property
    def calendars(self) -> Calendars:
        """The calendars with the overrides that this process has loaded."""
        return self.market.calendars

    async def now(self, conn: Db | None = None) -> datetime:
        """Return the business time. Costs a round trip in a sandbox: routes use `caller.now`."""
        return await self.engine.now(conn)

    @asynccontextmanager
    async def one_snapshot(self) -> AsyncIterator[Connection]:
        """Yield a connection that reads all customers as of one moment, to decide or to report. Raises Unavailable."""
        async with self.pool.acquire() as conn, one_snapshot(conn, distributed=self.engine.is_distributed):
            yield conn

    async def close(self) -> None:
        """Wait for background work that outlives a response."""
        await self.background.close()


async def limit_usage(
    bank: Bank,
    what: str,
    customer_id: UUID,
    *,
    account: UUID | None = None,
    member: UUID | None = None,
    more: int = 1,
) -> None:
    """Count an action of a customer, once or several times, before it is done. Raises Refused `usage-limit-reached`.

    It counts even if the action fails. `account` is that of another bank.
    """
    entry = await bank.directory.find("customer", customer_id)
    partner_id = None if entry is None else entry.partner_id
    uses = uses_of(what, customer=customer_id, partner=partner_id, account=account, member=member, more=more)
    async with bank.pool.acquire() as conn:
        await count_usage(conn, bank.settings.limits, uses, wall_now())


def uses_of(what: str, *, more: int = 1, **subjects: UUID | None) -> dict[tuple[str, UUID], int]:
    """Return the counters with their subjects; without a limit there are none."""
    return {
        (f"{what}.{whose}", subject): more
        for whose, subject in subjects.items()
        if subject is not None and f"{what}.{whose}" in USAGE_LIMITS
    }
