"""The open bank that routes, workers and commands of the operator share."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from copy import copy
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from billfold.ledger.directory.store import Directory
from billfold.ledger.engine.without_commands import EngineWithoutCommands
from billfold.ledger.types import (ScheduledJob)
from billfold.platform.background import BackgroundTasks

if TYPE_CHECKING:
    from billfold.accounts.counterparties.ports import LinkingProvider
    from billfold.accounts.portals.ports import WalletSource
    from billfold.approvals.store.approved_transfers import ApprovedRequests
    from billfold.bills.rules.market import Market
    from billfold.data_keys.keys import DataKeys
    from billfold.documents.ports import FileInspector, FileStore
    from billfold.ledger.context import (BankPolicy)
    from billfold.ledger.engine.engine import Engine
    from billfold.onboarding.applications.ports import IdentityCheck
    from billfold.screening.screening import CurrentList
    from billfold.payments.cards.ports import CardProcessor
    from billfold.payments.crypto.chains.types import Chains
    from billfold.payments.crypto.withdrawals.ports import Signer
    from billfold.payments.files.ports import RailExchanges
    from billfold.platform.calendars import Calendars
    from billfold.platform.crypto import Vault
    from billfold.platform.database.connection import (Connection, Pool)
    from billfold.platform.database.replica import Replica
    from billfold.platform.paging import Pager
    from billfold.platform.settings.settings import Settings

JobRunner = Callable[["Bank", ScheduledJob], Awaitable[None]]
"""Runs one scheduled job. Running it twice changes nothing the second time."""
JobRunners = Mapping[str, JobRunner]
"""The runner of each kind of job. Jobs of other kinds are left to other processes."""


@dataclass(kw_only=True, eq=False)
class Bank:
    """Engine, market, calendars, keys and ports of one process."""

    pool: Pool
    engine: Engine
    market: Market
    terms: BankPolicy
    seed: bytes
    settings: Settings
    pager: Pager
    vault: Vault
    data_keys: DataKeys
    rails: RailExchanges
    files: FileStore
    inspection: FileInspector
    job_runners: JobRunners
    approvals: ApprovedRequests
    sanctions: CurrentList
    linking: LinkingProvider | None = None
    identity: IdentityCheck | None = None
    cards: CardProcessor | None = None
    wallets: WalletSource | None = None
    chains: Chains = field(default_factory=dict)
    signer: Signer | None = None
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

    def read_by(self, pool: Pool) -> Bank:
        """Return the same bank, of which what is stored is read by connections of another pool. It takes no commands.

        What a command has written would not be there yet.
        """
        other = copy(self)
        other.pool, other.engine = pool, EngineWithoutCommands(self.engine)
        other.data_keys = self.data_keys.read_by(self.pool)
        return other

    async def now(self, conn: Connection | None = None) -> datetime:
        """Return the business time. Costs a round trip in a sandbox: routes use `caller.now`."""
        return await self.engine.now(conn)

    async def close(self) -> None:
        """Wait for what goes on after answers, and end what the bank keeps open outside of it."""
        await self.background.close()
        for outside in (self.cards, self.signer):
            if outside is not None:
                await outside.close()
