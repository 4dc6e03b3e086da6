"""The bank as every door sees it: the one writer, the market, the calendars, the keys."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from billfold.domain.directory import Directory

if TYPE_CHECKING:
    from billfold.domain.tbills import Market
    from billfold.engine.batch import Engine
    from billfold.flows.command import Terms
    from billfold.kit.calendars import Calendars
    from billfold.kit.crypto import Vault
    from billfold.kit.db import Connection, Pool
    from billfold.kit.paging import Pager
    from billfold.kit.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Bank:
    """Everything a door needs. One per process; holds no state but caches of what never changes."""

    pool: Pool
    engine: Engine
    market: Market
    calendars: Calendars
    terms: Terms
    seed: bytes = field(repr=False)
    settings: Settings
    pager: Pager = field(repr=False)
    vault: Vault = field(repr=False)
    directory: Directory = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "directory", Directory(self.pool))

    async def now(self, conn: Connection | None = None) -> datetime:
        """Return the business time. Costs a round trip in a sandbox: doors use `caller.now`."""
        return await self.engine.now(conn)
