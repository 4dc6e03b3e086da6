"""The process that runs a sandbox, as its tasks need it: its other processes, its credentials, its upgrade."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import date
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from billfold.audit.types import Origin
from billfold.bills.market_log import market_change
from billfold.bills.store import CalendarOverride, save_override
from billfold.cli.context import CliContext, Database
from billfold.cli.process_supervisor import Supervisor
from billfold.cli.resources import with_connection
from billfold.migrations import runner
from billfold.platform.database.pool import create_pool
from billfold.platform.errors import InvariantError
from billfold.sandbox.control.socket import control_socket
from billfold.sandbox.control.tasks import Progress, SandboxTasks
from billfold.sandbox.credentials_file import SandboxFile, read_sandbox_file, require_sandbox_file, write_sandbox_file
from billfold.sandbox.scenarios.player import SCENARIOS, MarketChanges, play
from billfold.verify.runner import verify_bank

if TYPE_CHECKING:
    from billfold.platform.crypto import Vault
    from billfold.platform.database.pool import Connection
    from billfold.platform.settings.settings import Settings
    from billfold.sandbox.forks.copies import BankCopies

SHOCK_DAYS = 14
_MILLI_PER_BASIS_POINT = 10
_SHIFT = """
UPDATE bill_rate SET discount_milli = greatest(discount_milli + $2, 1), coupon_milli = greatest(coupon_milli + $2, 1)
 WHERE day > $1 AND day <= $1 + $3::int
"""
CARD_PROCESSOR, LOCAL_CHAIN = "card processor", "local chain"
_ADDRESSES = (
    "base_url",
    "partner_url",
    "host",
    "http_url",
    "docs_url",
    "clock_url",
    "ca_file",
    "auth_url",
    "customer_url",
    "card_network",
)


class RunningSandbox:
    """One sandbox that runs in this process."""

    def __init__(
        self,
        context: CliContext,
        settings: Settings,
        database: Database,
        *,
        supervisor: Supervisor,
        copies: BankCopies,
        saved: SandboxFile,
    ) -> None:
        self._context = context
        self._settings = settings
        self._database = database
        self._supervisor = supervisor
        self._copies = copies
        self._saved = saved

    def without_counterparts(self) -> AbstractAsyncContextManager[None]:
        """Let the card processor and the local chain not run meanwhile."""
        return self._supervisor.without(CARD_PROCESSOR, LOCAL_CHAIN)

    async def upgrade(self, dsn: str) -> None:
        """Bring a database that an earlier release left to the shape of this one."""
        # Also where nothing is pending: a copy has not the rights of the database itself.
        if await with_connection(dsn, runner.up):
            await self._context.initialize_database(self._settings, dsn)

    def after_rewind(self) -> None:
        """Give the credentials of the bank that is there now the addresses of this start."""
        state_dir = self._settings.state_dir
        restored = read_sandbox_file(state_dir) or self._saved
        here = {name: getattr(self._saved, name) for name in _ADDRESSES}
        write_sandbox_file(state_dir, msgspec.structs.replace(restored, **here))

    async def play(self, name: str, progress: Progress) -> None:
        """Play a scenario to its end."""
        scenario = SCENARIOS[name]
        loop = asyncio.get_running_loop()

        def change(work: Callable[..., Awaitable[None]], *values: object) -> None:
            asyncio.run_coroutine_threadsafe(self._change_market(work, *values), loop).result()

        changes = MarketChanges(partial(change, _shift_rates), partial(change, _close_market))
        seed = await with_connection(self._database.dsn, lambda conn: conn.fetchval("SELECT seed FROM bank"))
        credentials = require_sandbox_file(self._settings.state_dir)
        await asyncio.to_thread(play, scenario, credentials, changes, bank_seed=seed, progress=progress)
        progress.begin("The ledger is verified")
        progress.note(await self._verify())

    async def _change_market(self, work: Callable[..., Awaitable[None]], *values: object) -> None:
        """Change the market, as the owner, while nobody has the bank open: every process reads it anew."""
        vault, owner = self._context.vault(self._settings), self._database.owner_dsn
        async with self._copies.pause(), await create_pool(owner, max_size=1) as pool, pool.acquire() as conn:
            await work(conn, vault, *values)

    async def _verify(self) -> str:
        """Verify the ledger, say how much of it there is. Raises InvariantError."""
        async with self._context.bank(self._settings, self._database.dsn) as bank, bank.pool.acquire() as conn:
            report = await verify_bank(conn, vault=bank.vault, data_keys=bank.data_keys)
        if report.findings:
            raise InvariantError(f"{len(report.findings)} findings, the first: {report.findings[0]}")
        return "Every row is as it was written."


@asynccontextmanager
async def perform_tasks(state_dir: Path, copies: BankCopies, sandbox: RunningSandbox) -> AsyncIterator[None]:
    """Do the tasks that are requested meanwhile."""
    tasks = SandboxTasks(copies, sandbox)
    try:
        async with control_socket(state_dir, tasks.answer):
            yield
    finally:
        await tasks.close()


async def _shift_rates(conn: Connection, vault: Vault, day: date, basis_points: int) -> None:
    """Let the Treasury publish other rates for two weeks after a day. What was booked by rates until then stays."""
    async with conn.transaction(), market_change(conn, vault, Origin.system()):
        await conn.execute(_SHIFT, day, basis_points * _MILLI_PER_BASIS_POINT, SHOCK_DAYS)


async def _close_market(conn: Connection, vault: Vault, day: date, reason: str) -> None:
    """Close the bond market on a day to come."""
    async with conn.transaction(), market_change(conn, vault, Origin.system()):
        await save_override(conn, CalendarOverride(day, "closed", None, None, reason))
