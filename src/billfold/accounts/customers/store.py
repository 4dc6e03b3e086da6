"""Reads of customers."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from billfold.ledger.customers import CustomerRow, profile_reference
from billfold.platform.database.connection import Connection, Db
from billfold.platform.database.paging import BY_OPENING, KeysetList
from billfold.platform.database.rows import References, Table
from billfold.platform.errors import Refused

_customers = Table(CustomerRow)
_OWNERS = f"""
WITH d AS MATERIALIZED (
  SELECT kind, value, customer_id FROM directory JOIN unnest($1::text[], $2::text[]) AS k(kind, value)
   USING (kind, value) WHERE value = ANY($2::text[]))
SELECT d.kind, d.value, {_customers.columns("c")} FROM d JOIN customer c USING (customer_id)
"""

_FROZEN_BY_OTHERS = """
SELECT EXISTS (
  SELECT 1 FROM command c
   WHERE c.customer_id = $1 AND c.accepted AND c.kind = 'SetCustomerState' AND c.caller <> $2
     AND c.outcome->>'status' = 'FROZEN'
     AND c.version >= coalesce((SELECT max(o.version) FROM command o
                                 WHERE o.customer_id = $1 AND o.accepted AND o.kind = 'SetCustomerState'
                                   AND o.outcome->>'status' <> 'FROZEN'), 0))
"""

Entry = tuple[str, str]
"""A directory kind and an object's identifier: ("pocket", its id)."""

_LISTED = f"""
SELECT {_customers.columns()}, written_no
  FROM customer
 WHERE partner_id = $1 AND role IN ('customer', 'partner')
   AND ($2::text IS NULL OR account_status = $2) AND ($3::text IS NULL OR type = $3)
"""
CUSTOMERS = KeysetList(_LISTED + " AND {page}", _customers.read, **BY_OPENING)
_BY_NAME = KeysetList(
    _LISTED + " AND lower(name) ~>=~ $4 AND lower(name) ~<~ $5 AND {page}", _customers.read, **BY_OPENING
)
_OF_IDS = KeysetList(
    _LISTED
    + """ AND customer_id = ANY($4::uuid[])
   AND ($5::text IS NULL OR lower(name) ~>=~ $5 AND lower(name) ~<~ $6) AND {page}""",
    _customers.read,
    **BY_OPENING,
)
_LAST = "\U0010ffff"
"""A text that sorts after every text with the same beginning."""
_PROFILES = "SELECT customer_id, profile FROM customer WHERE customer_id = ANY($1) AND customer_id = ANY($2)"
_FEATURES = "SELECT customer_features($1)"
_OWN_FEATURES = "SELECT feature, enabled FROM customer_feature WHERE customer_id = $1"
_SET_FEATURE = """
INSERT INTO customer_feature (customer_id, feature, enabled) VALUES ($1, $2, $3)
    ON CONFLICT (customer_id, feature) DO UPDATE SET enabled = excluded.enabled
"""
_FOR_OPERATOR = """
SELECT c.customer_id, c.name, p.slug, c.account_status, c.opened_at FROM customer c JOIN partner p USING (partner_id)
 WHERE ($1::text IS NULL OR c.account_status = $1) AND ($2::text IS NULL OR p.slug = $2)
 ORDER BY c.opened_at DESC, c.written_no DESC LIMIT $3
"""


class ListedCustomer(NamedTuple):
    """A customer in an operator's list."""

    customer_id: UUID
    name: str
    partner: str
    status: str
    opened_at: datetime


def listed_customers(
    partner_id: UUID, status: str | None, kind: str | None, *, name: str | None, among: Sequence[UUID] | None = None
) -> tuple[KeysetList[CustomerRow], tuple[object, ...]]:
    """Return the list of a partner's customers, including its own account, newest first, and its parameters.

    `name` is a prefix of their names, ignoring case; `among` are ids.
    """
    values = (partner_id, status, kind)
    names = (None, None) if name is None else (name.lower(), name.lower() + _LAST)
    if among is not None:
        return _OF_IDS, (*values, among, *names)
    return (CUSTOMERS, values) if name is None else (_BY_NAME, (*values, *names))


async def find_profiles(conn: Connection, customer_ids: Sequence[UUID], ids: Sequence[UUID]) -> References:
    """Return the profiles of these customers as stored, for flows."""
    rows = await conn.fetch(_PROFILES, customer_ids, ids)
    return [(customer_id, profile_reference(customer_id), profile) for customer_id, profile in rows]


async def list_for_operator(conn: Db, status: str | None, partner: str | None, *, limit: int) -> list[ListedCustomer]:
    """Return customers of all partners, or of the partner with this slug, newest first."""
    return [ListedCustomer(*row) for row in await conn.fetch(_FOR_OPERATOR, status, partner, limit)]


async def list_features(conn: Db, customer_id: UUID) -> frozenset[str]:
    """Return a customer's features: those set for this customer, else those of its partner."""
    return frozenset(await conn.fetchval(_FEATURES, customer_id))


async def list_own_features(conn: Db, customer_id: UUID) -> dict[str, bool]:
    """Return the features set for this customer itself: on or off."""
    return {row["feature"]: row["enabled"] for row in await conn.fetch(_OWN_FEATURES, customer_id)}


async def set_feature(conn: Db, customer_id: UUID, feature: str, *, enabled: bool) -> None:
    """Enable or disable a feature for one customer, regardless of its partner."""
    await conn.execute(_SET_FEATURE, customer_id, feature, enabled)


async def require_feature(conn: Db, customer_id: UUID, feature: str) -> None:
    """Raise Refused `feature-not-enabled` unless the customer has the feature."""
    if feature not in await list_features(conn, customer_id):
        raise Refused("feature-not-enabled", f"The feature `{feature}` is not enabled.")


async def list_owners(conn: Db, entries: Collection[Entry]) -> dict[Entry, CustomerRow]:
    """Return the owners of objects, with their current registration."""
    if not entries:
        return {}
    kinds, values = zip(*entries, strict=True)
    return {(kind, value): CustomerRow(*row) for kind, value, *row in await conn.fetch(_OWNERS, kinds, values)}


async def is_frozen_by_others(conn: Db, customer_id: UUID, caller: str) -> bool:
    """Return whether others than a caller have frozen a customer since it was last unfrozen."""
    return bool(await conn.fetchval(_FROZEN_BY_OTHERS, customer_id, caller))
