"""Payees of peer-to-peer payments; concurrent look-ups share one query."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from billfold.accounts.counterparties import store as counterparty_store
from billfold.accounts.counterparties.store import PeerKey, PeerRow
from billfold.platform.database.pool import Batcher
from billfold.platform.errors import NotFound, Refused

if TYPE_CHECKING:
    from billfold.platform.database.connection import (Pool)


class Peer(NamedTuple):
    """The receiving Pocket, and the network addresses of the sending and the receiving Pocket."""

    customer_id: UUID
    pocket_id: UUID
    addresses: tuple[str | None, str | None]


class PeerLookup:
    """Looks up counterparties that are paid within the bank."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._batcher: Batcher[PeerKey, PeerRow | None] = Batcher(self._find)

    async def find(self, payer: UUID, pocket_id: UUID, counterparty_id: UUID) -> Peer:
        """Return the receiving Pocket of a customer's counterparty.

        Raises NotFound, and Refused counterparty-not-verified if it is not linked.
        """
        peer = await self._batcher.ask((payer, pocket_id, counterparty_id))
        if peer is None:
            raise NotFound("There is no such counterparty.")
        if peer.type != "on_us" or peer.status not in {"LINKED", "VERIFIED"}:
            raise Refused(
                "counterparty-not-verified", f"The counterparty is {peer.status}; link an on_us counterparty."
            )
        if peer.customer_id is None or peer.pocket_id is None:
            raise NotFound("The counterparty has no Pocket at this bank.")
        return Peer(peer.customer_id, peer.pocket_id, (peer.payer_address, peer.payee_address))

    async def close(self) -> None:
        """Wait for the look-ups in progress."""
        await self._batcher.settle()

    async def _find(self, links: Sequence[PeerKey]) -> list[PeerRow | None]:
        return await counterparty_store.find_peers(self._pool, links)
