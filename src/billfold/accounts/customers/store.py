"""Reads of customers."""

from __future__ import annotations

from billfold.ledger.directory.types import CustomerRow
from billfold.platform.database.keyset import KeysetList

CUSTOMERS = KeysetList(
    """
SELECT customer_id, partner_id, role, type, name, account_status, profile, opened_at, closed_at, closure_reason
  FROM customer
 WHERE partner_id = $1 AND role = 'customer'
   AND ($2::text IS NULL OR account_status = $2) AND ($3::text IS NULL OR type = $3) AND {page}
""",
    lambda row: CustomerRow(*row),
    opened_at="timestamptz",
    customer_id="uuid",
)
"""A partner's customers of a status and a type, newest first."""
