"""Watches the chains in a worker: each by itself, so that one whose nodes are away stops no other."""

from __future__ import annotations

from billfold.payments.crypto.chains.types import Chains
import asyncio
import zlib
from contextlib import suppress
from typing import TYPE_CHECKING

import structlog

from billfold.payments.crypto.chains.evm import EvmNode
from billfold.payments.crypto.deposits.watcher import ChainWatcher
from billfold.platform.clock import monotonic
from billfold.platform.database.shortage import error_summary

if TYPE_CHECKING:
    from billfold.ledger.bank import Bank
    from billfold.ledger.types import (ScheduledJob)
    from billfold.payments.crypto.chains.types import Chain

log = structlog.get_logger(__name__)

POLL_SECONDS = 2.0
ROUND_SECONDS = 120.0
_LOCK = 0x63686E


async def record_returned(bank: Bank, at: ScheduledJob) -> None:
    """Log a deposit that an operator returned: who has the keys of the address sends the tokens, not the bank."""
    del bank
    log.warning("deposit_returned_outside", item_id=str(at.object_id))


class ChainWatchers:
    """The watchers of all chains of a bank. Of several workers one at a time watches a chain."""

    def __init__(self, poll_seconds: float = POLL_SECONDS) -> None:
        self._watchers: dict[str, ChainWatcher] = {}
        self._poll_seconds = poll_seconds
        self._next_at = 0.0

    async def __call__(self, bank: Bank) -> int:
        """Do one round of every chain; return how many deposits were booked."""
        if not bank.ports[Chains] or monotonic() < self._next_at:
            return 0
        booked = await asyncio.gather(*(self._watch(bank, chain) for chain in bank.ports[Chains].values()))
        self._next_at = monotonic() + self._poll_seconds
        return sum(booked)

    async def aclose(self) -> None:
        """Close the connections to all nodes."""
        for watcher in self._watchers.values():
            with suppress(OSError):
                await watcher.aclose()

    async def _watch(self, bank: Bank, chain: Chain) -> int:
        watcher = self._watchers.get(chain.name)
        if watcher is None:
            nodes = [EvmNode(chain, url) for url in chain.rpc_urls]
            watcher = self._watchers[chain.name] = ChainWatcher(bank, chain, nodes)
        try:
            async with asyncio.timeout(ROUND_SECONDS):
                return await _run_alone(bank, chain, watcher)
        except Exception as error:  # noqa: BLE001 - it is of this chain alone, and the next round may be better
            log.warning("chain_round_failed", chain=chain.name, error=error_summary(error))
            return 0


async def _run_alone(bank: Bank, chain: Chain, watcher: ChainWatcher) -> int:
    lock = _LOCK, zlib.crc32(chain.name.encode()) - 2**31
    async with bank.pool.acquire() as conn:
        if not await conn.fetchval("SELECT pg_try_advisory_lock($1::int, $2::int)", *lock):
            return 0
        try:
            return await watcher.run_round()
        finally:
            await conn.execute("SELECT pg_advisory_unlock($1::int, $2::int)", *lock)
