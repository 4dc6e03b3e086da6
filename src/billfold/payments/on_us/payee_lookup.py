"""Whom peer-to-peer payments reach, looked up for all who ask at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from billfold.accounts.counterparties import peers
from billfold.accounts.counterparties.peers import PeerKey, PeerRow
from billfold.platform.database.batcher import Batcher
from billfold.platform.errors import NotFound, Refused

if TYPE_CHECKING:
    from billfold.platform.database.pool import Pool


class Peer(NamedTuple):
    """Where a payment goes, and the addresses of the paying and the paid Pocket on the network."""

    customer_id: UUID
    pocket_id: UUID
    addresses: tuple[str | None, str | None]


class PeerLookup:
    """The counterparties of one bank that are paid over its network."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._batcher: Batcher[PeerKey, PeerRow | None] = Batcher(self._find)

    async def find(self, payer: UUID, pocket_id: UUID, counterparty_id: UUID) -> Peer:
        """Return whom a customer's counterparty is.

        Raises NotFound, and Refused counterparty-not-verified for one that is not linked.
        """
        peer = await self._batcher.ask((payer, pocket_id, counterparty_id))
        if peer is None:
            raise NotFound("There is no such counterparty.")
        if peer.type != "on_us" or peer.status not in {"LINKED", "VERIFIED"}:
            raise Refused(
                "counterparty-not-verified", f"The counterparty is {peer.status}; link an on_us counterparty."
            )
        if peer.customer_id is None or peer.pocket_id is None:
            raise NotFound("The counterparty leads nowhere.")
        return Peer(peer.customer_id, peer.pocket_id, (peer.payer_address, peer.payee_address))

    async def close(self) -> None:
        """Wait until nobody is being looked up."""
        await self._batcher.settle()

    async def _find(self, links: Sequence[PeerKey]) -> list[PeerRow | None]:
        return await peers.find_peers(self._pool, links)
