"""Whom payments between Pockets of this bank reach, with the addresses of both ends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from billfold.accounts.portals.store import FIRST_ADDRESS
from billfold.platform.database.pool import listed

if TYPE_CHECKING:
    from billfold.platform.database.pool import Connection, Pool

Link = tuple[UUID, UUID, UUID]
"""A customer, the Pocket he pays from, and the counterparty he pays."""

_HERE = FIRST_ADDRESS.format(customer="k.customer_id", pocket="k.pocket_id")
_THERE = FIRST_ADDRESS.format(customer="c.target_customer_id", pocket="c.target_pocket_id")
# One look into an index each, however long the tables have grown since this was planned.
_PEERS = f"""
SELECT k.nth - 1, c.type, c.status, c.target_customer_id, c.target_pocket_id, {_HERE}, {_THERE}
  FROM unnest($1::text::uuid[], $2::text::uuid[], $3::text::uuid[]) WITH ORDINALITY
       AS k(customer_id, pocket_id, counterparty_id, nth)
 CROSS JOIN LATERAL (
       SELECT * FROM counterparty o
        WHERE o.customer_id = k.customer_id AND o.counterparty_id = k.counterparty_id LIMIT 1) c
"""


class LinkedPeer(NamedTuple):
    """A counterparty of any type, where it leads, and the first open address of either Pocket."""

    type: str
    status: str
    customer_id: UUID | None
    pocket_id: UUID | None
    here: str | None
    there: str | None


async def find_peers(conn: Connection | Pool, links: Sequence[Link]) -> list[LinkedPeer | None]:
    """Return what each link leads to, None for a counterparty that is not the customer's."""
    found: list[LinkedPeer | None] = [None] * len(links)
    customers, pockets, ids = zip(*links, strict=True)
    for nth, *peer in await conn.fetch(_PEERS, listed(customers), listed(pockets), listed(ids)):
        found[nth] = LinkedPeer(*peer)
    return found
