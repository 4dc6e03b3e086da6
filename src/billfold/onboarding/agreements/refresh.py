"""Keeps what a process knows of the agreements as new as their table, without a restart."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import structlog

from billfold.onboarding.agreements.store import load_terms
from billfold.platform.database.shortage import error_summary

if TYPE_CHECKING:
    from billfold.ledger.types import Agreements
    from billfold.platform.database.connection import (Connection, Pool)

log = structlog.get_logger(__name__)

REFRESH_SECONDS = 2.0


@asynccontextmanager
async def run_agreements_refresher(pool: Pool, agreements: Agreements) -> AsyncIterator[None]:
    """Keep the agreements new as long as the context lasts; inside it they are known."""
    await refresh(pool, agreements)
    task = asyncio.create_task(_run(pool, agreements))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def refresh(conn: Connection | Pool, agreements: Agreements) -> None:
    """Read which versions there are."""
    agreements.published = await load_terms(conn)


async def _run(pool: Pool, agreements: Agreements) -> None:
    """Look again and again, until cancelled. A database that is away is waited for."""
    while True:
        await asyncio.sleep(REFRESH_SECONDS)
        try:
            await refresh(pool, agreements)
        except Exception as error:  # noqa: BLE001 - what is known is used on
            log.warning("agreements_refresh_failed", error=error_summary(error))
