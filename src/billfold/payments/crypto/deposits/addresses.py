"""Addresses of portals: drawn in the order of a sequence, so that a rollback or a crash skips one and repeats none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from billfold.accounts.portals.types import Wallet
from billfold.payments.crypto.chains.addresses import WatchOnlyAddresses

if TYPE_CHECKING:
    from billfold.payments.crypto.chains.types import Chains
    from billfold.platform.database.connection import (Pool)

_NEXT = "SELECT nextval('wallet_index')"
_XPUB = "SELECT xpub_id FROM wallet_xpub WHERE xpub = $1 AND derivation_path = $2"
_ADD_XPUB = "INSERT INTO wallet_xpub (xpub, derivation_path) VALUES ($1, $2) ON CONFLICT DO NOTHING"


class DepositAddresses:
    """Gives out addresses on the configured chains. All chains share one sequence: keys may be the same."""

    def __init__(self, pool: Pool, chains: Chains) -> None:
        self._pool = pool
        self._chains = chains
        self._sources = {name: WatchOnlyAddresses(each.xpub, each.derivation_path) for name, each in chains.items()}

    @property
    def chains(self) -> tuple[str, ...]:
        """The chains on which there are addresses."""
        return tuple(sorted(self._chains))

    async def allot(self, chain: str) -> Wallet:
        """Return a new address on one of the chains."""
        configured = self._chains[chain]
        key = configured.xpub, configured.derivation_path
        xpub_id = await self._pool.fetchval(_XPUB, *key)
        if xpub_id is None:
            await self._pool.execute(_ADD_XPUB, *key)
            xpub_id = await self._pool.fetchval(_XPUB, *key)
        index = await self._pool.fetchval(_NEXT)
        return Wallet(
            chain=chain,
            address=self._sources[chain].derive(index),
            asset=configured.token.asset,
            xpub_id=xpub_id,
            index=index,
        )

    def minimum_cents(self, chain: str) -> int | None:
        """Return the smallest deposit that is credited at once, None where the chain is not read any more."""
        return self._chains[chain].token.minimum_cents if chain in self._chains else None
