"""The recipients of payments between Pockets of this bank, with the addresses of both ends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from billfold.accounts.portals.store import FIRST_NETWORK_ADDRESS
from billfold.platform.database.pool import uuid_array

if TYPE_CHECKING:
    from billfold.platform.database.pool import Connection, Pool

PeerKey = tuple[UUID, UUID, UUID]
"""A customer, the Pocket that pays, and the counterparty that is paid."""

_PAYER_ADDRESS = FIRST_NETWORK_ADDRESS.format(customer="k.customer_id", pocket="k.pocket_id")
_PAYEE_ADDRESS = FIRST_NETWORK_ADDRESS.format(customer="c.target_customer_id", pocket="c.target_pocket_id")
# One look into an index each, however long the tables have grown since this was planned.
_PEERS = f"""
SELECT k.nth - 1, c.type, c.status, c.target_customer_id, c.target_pocket_id, {_PAYER_ADDRESS}, {_PAYEE_ADDRESS}
  FROM unnest($1::text::uuid[], $2::text::uuid[], $3::text::uuid[]) WITH ORDINALITY
       AS k(customer_id, pocket_id, counterparty_id, nth)
 CROSS JOIN LATERAL (
       SELECT * FROM counterparty o
        WHERE o.customer_id = k.customer_id AND o.counterparty_id = k.counterparty_id LIMIT 1) c
"""


class PeerRow(NamedTuple):
    """A counterparty of any type, where it leads, and the first open address of either Pocket."""

    type: str
    status: str
    customer_id: UUID | None
    pocket_id: UUID | None
    payer_address: str | None
    payee_address: str | None


async def find_peers(conn: Connection | Pool, links: Sequence[PeerKey]) -> list[PeerRow | None]:
    """Return what each link leads to, None for a counterparty that is not the customer's."""
    peers: list[PeerRow | None] = [None] * len(links)
    customers, pockets, ids = zip(*links, strict=True)
    for nth, *peer in await conn.fetch(_PEERS, uuid_array(customers), uuid_array(pockets), uuid_array(ids)):
        peers[nth] = PeerRow(*peer)
    return peers
