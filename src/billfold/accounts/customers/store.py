"""Reads of customers."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING
from uuid import UUID

from billfold.ledger.directory.types import CustomerRow
from billfold.platform.database.keyset import BY_OPENING, KeysetList, reads

if TYPE_CHECKING:
    from billfold.platform.database.pool import Connection, Pool

_OWNERS = """
SELECT k.kind, k.value, c.customer_id, c.partner_id, c.role, c.type, c.name, c.account_status, c.profile,
       c.opened_at, c.closed_at, c.closure_reason, c.agreement_version
  FROM unnest($1::text[], $2::text[]) AS k(kind, value)
  JOIN directory d ON d.kind = k.kind AND d.value = k.value
  JOIN customer c USING (customer_id)
"""

_FROZEN_BY_OTHERS = """
SELECT EXISTS (
  SELECT FROM command c
   WHERE c.customer_id = $1 AND c.accepted AND c.kind = 'SetCustomerState' AND c.caller <> $2
     AND c.outcome->>'status' = 'FROZEN'
     AND c.version >= coalesce((SELECT max(o.version) FROM command o
                                 WHERE o.customer_id = $1 AND o.accepted AND o.kind = 'SetCustomerState'
                                   AND o.outcome->>'status' <> 'FROZEN'), 0))
"""

Entry = tuple[str, str]
"""A kind of the directory and what stands for an object of it: ("pocket", its id)."""

CUSTOMERS = KeysetList(
    """
SELECT customer_id, partner_id, role, type, name, account_status, profile, opened_at, closed_at, closure_reason,
       agreement_version, written_no
  FROM customer
 WHERE partner_id = $1 AND role IN ('customer', 'partner')
   AND ($2::text IS NULL OR account_status = $2) AND ($3::text IS NULL OR type = $3) AND {page}
""",
    reads(CustomerRow),
    **BY_OPENING,
)
"""A partner's customers of a status and a type, its own account among them, newest first."""


async def list_owners(conn: Connection | Pool, entries: Collection[Entry]) -> dict[Entry, CustomerRow]:
    """Return whose the objects are, as their owners are registered now."""
    if not entries:
        return {}
    kinds, values = zip(*entries, strict=True)
    return {(kind, value): CustomerRow(*row) for kind, value, *row in await conn.fetch(_OWNERS, kinds, values)}


async def is_frozen_by_others(conn: Connection | Pool, customer_id: UUID, caller: str) -> bool:
    """Tell whether others than a caller have frozen a customer since it was unfrozen last."""
    return bool(await conn.fetchval(_FROZEN_BY_OTHERS, customer_id, caller))
