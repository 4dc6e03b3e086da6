"""The open bank that routes, workers and commands of the operator share."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from billfold.bills.rules.market import Market
from billfold.ledger.context import BankPolicy
from billfold.ledger.directory.store import Directory
from billfold.ledger.engine.engine import Engine
from billfold.ledger.types import ScheduledJob
from billfold.platform.background import BackgroundTasks
from billfold.platform.calendars import Calendars
from billfold.platform.crypto import Vault
from billfold.platform.database.connection import Connection, Pool
from billfold.platform.database.replica import Replica
from billfold.platform.paging import Pager
from billfold.platform.ports import Ports
from billfold.platform.settings.settings import Settings

JobRunner = Callable[["Bank", ScheduledJob], Awaitable[None]]
"""Runs one scheduled job. Running it twice changes nothing the second time."""
JobRunners = Mapping[str, JobRunner]
"""The runner of each kind of job. Jobs of other kinds are left to other processes."""


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
        self.directory = Directory(self.pool)
        self.background = BackgroundTasks()
        self.export_turn = asyncio.Lock()
        """Held by the one file of rows of which a part is being made."""

    @property
    def calendars(self) -> Calendars:
        """The calendars with the overrides that this process has taken up."""
        return self.market.calendars

    async def now(self, conn: Connection | None = None) -> datetime:
        """Return the business time. Costs a round trip in a sandbox: routes use `caller.now`."""
        return await self.engine.now(conn)

    async def close(self) -> None:
        """Wait for background work that outlives a response."""
        await self.background.close()
