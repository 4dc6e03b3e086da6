"""Reads of portals."""

from collections.abc import Mapping
from datetime import datetime
from uuid import UUID

from billfold.accounts.portals.commands import PortalRow
from billfold.ledger.book.book import Book
from billfold.platform.database.connection import Connection, Db
from billfold.platform.database.paging import BY_CREATION, KeysetList
from billfold.platform.database.rows import Table
from billfold.platform.errors import NotFound

_portals = Table(PortalRow)
_OF_CUSTOMERS = f"{_portals.select} WHERE customer_id = ANY($1::uuid[])"
FIRST_NETWORK_ADDRESS = """
(SELECT network_address FROM portal p
  WHERE p.customer_id = {customer} AND p.pocket_id = {pocket}
    AND p.status = 'OPEN' AND p.network_address IS NOT NULL
  ORDER BY p.created_at, p.written_no LIMIT 1)
"""
"""The first open address of a Pocket on the network, for a statement with both."""
_LISTED = """customer_id = $1 AND ($2::uuid IS NULL OR pocket_id = $2) AND ($3::text[] IS NULL OR type = ANY($3))
   AND ($4::bigint[] IS NULL OR portal_id = ANY(ARRAY(
         SELECT object_id FROM object_note WHERE customer_id = $1 AND kind = 'portal' AND terms @> $4)))
   AND {page}"""
PORTALS = KeysetList(
    f"SELECT {_portals.columns()}, written_no FROM portal WHERE {_LISTED}", _portals.read, **BY_CREATION
)
# What a filter reads never changes. A cluster joins its local portals with rows of the shards by their ids.
PORTALS_THEN = KeysetList(
    f"""WITH page AS MATERIALIZED (SELECT portal_id FROM portal WHERE created_at <= $5 AND {_LISTED}
), former AS MATERIALIZED (
  SELECT DISTINCT ON (object_id) object_id, row FROM former_row
   WHERE customer_id = $1 AND kind = 'portal' AND object_id IN (SELECT portal_id FROM page) AND until > $5
   ORDER BY object_id, until)
SELECT {_portals.columns_as_of()}, written_no
  FROM portal JOIN page ON page.portal_id = portal.portal_id LEFT JOIN LATERAL (
    SELECT json_populate_record(portal, f.row) AS was FROM former f WHERE f.object_id = portal.portal_id) w ON true
 WHERE portal.customer_id = $1 {{order}}""",
    _portals.read,
    **BY_CREATION,
)
"""Portals of a customer, of one pocket or of all, of some types or of all, and by terms of notes, newest first."""


async def get_portal(
    conn: Db, customer_id: UUID, portal_id: UUID, *, pocket_id: UUID | None = None, as_of: datetime | None = None
) -> PortalRow:
    """Return the portal, of this pocket if given. Raises NotFound."""
    portal = await _portals.get(conn, customer_id, portal_id, as_of=as_of)
    if pocket_id is not None and portal.pocket_id != pocket_id:
        raise NotFound("There is no such portal.")
    return portal


async def load_portals(conn: Connection, books: Mapping[UUID, Book]) -> None:
    """Load the portals of these books, by customer."""
    for portal in await _portals.all(conn, _OF_CUSTOMERS, list(books)):
        books[portal.customer_id].portals[portal.portal_id] = portal
