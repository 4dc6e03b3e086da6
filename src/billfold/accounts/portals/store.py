"""Reads of portals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING
from uuid import UUID

from billfold.accounts.portals.types import PortalRow
from billfold.platform.database.keyset import BY_CREATION, KeysetList, reads
from billfold.platform.errors import NotFound

if TYPE_CHECKING:
    from billfold.ledger.book.book import Book
    from billfold.platform.database.connection import (Connection, Pool)

_portal = reads(PortalRow)
_COLUMNS = """
SELECT customer_id, portal_id, pocket_id, type, name, status, routing_number, account_number,
       network_address, payment_rails, chain, wallet_address, asset, xpub_id,
       address_index, created_at, updated_at, written_no
  FROM portal
"""
_GET = f"{_COLUMNS} WHERE customer_id = $1 AND portal_id = $2"
_OF_CUSTOMERS = f"{_COLUMNS} WHERE customer_id = ANY($1::uuid[])"
FIRST_NETWORK_ADDRESS = """
(SELECT network_address FROM portal p
  WHERE p.customer_id = {customer} AND p.pocket_id = {pocket}
    AND p.status = 'OPEN' AND p.network_address IS NOT NULL
  ORDER BY p.created_at, p.written_no LIMIT 1)
"""
"""The first open address of a Pocket on the network, in a statement that names both."""
PORTALS = KeysetList(
    f"""{_COLUMNS}
 WHERE customer_id = $1 AND ($2::uuid IS NULL OR pocket_id = $2) AND ($3::text[] IS NULL OR type = ANY($3))
   AND {{page}}""",
    _portal,
    **BY_CREATION,
)
"""Portals of a customer, of one pocket or of all, of some types or of all, newest first."""


async def get_portal(
    conn: Connection | Pool, customer_id: UUID, portal_id: UUID, *, pocket_id: UUID | None = None
) -> PortalRow:
    """The portal, of this pocket when one is named. Raises NotFound."""
    row = await conn.fetchrow(_GET, customer_id, portal_id)
    if row is None or (pocket_id is not None and row["pocket_id"] != pocket_id):
        raise NotFound("There is no such portal.")
    return _portal(row)


async def load_portals(conn: Connection, books: Mapping[UUID, Book]) -> None:
    """Load the portals of these books, by customer."""
    for row in await conn.fetch(_OF_CUSTOMERS, list(books)):
        books[row["customer_id"]].portals[row["portal_id"]] = _portal(row)
