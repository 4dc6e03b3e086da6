"""Reads of what tax forms are made of, and the tax status of customers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime
from typing import TYPE_CHECKING, Final
from uuid import UUID

from billfold.reports.tax.types import LotMovement, TaxStatus

if TYPE_CHECKING:
    from asyncpg import Record

    from billfold.platform.database.pool import Connection, Pool

_FETCHED_AT_ONCE: Final = 2_000
_MOVEMENTS = """
SELECT p.entry_no, p.amount, p.asset,
       CASE WHEN f.kind = 'lot' THEN f.account_no END, f.pocket_id, f.acquired_on,
       CASE WHEN i.kind = 'lot' THEN i.account_no END,
       t.trade_id, t.activity, t.traded_at, coalesce(t.units, 0), coalesce(t.notional, 0), coalesce(t.tax_basis, 0)
  FROM posting p
  JOIN account f ON (f.customer_id, f.account_no) = (p.customer_id, p.debit)
  JOIN account i ON (i.customer_id, i.account_no) = (p.customer_id, p.credit)
  LEFT JOIN trade t ON f.kind <> i.kind AND t.customer_id = p.customer_id
       AND t.pocket_id = coalesce(f.pocket_id, i.pocket_id) AND t.entry_no = p.entry_no AND t.cusip = p.asset
       AND t.incoming = (i.kind = 'lot')
       AND t.activity = CASE WHEN 'custodian' IN (f.kind, i.kind) THEN 'EXTERNAL_SECURITY_TRANSFER'
                             WHEN i.kind = 'lot' THEN 'BUY' WHEN i.kind = 'treasury' THEN 'MATURITY' ELSE 'SELL' END
 WHERE p.customer_id = $1 AND p.entry_no > $2 AND p.entry_no <= $3 AND p.phase = 0 AND 'lot' IN (f.kind, i.kind)
 ORDER BY p.entry_no, p.posting_no
"""
_CUSTOMERS = """
SELECT customer_id FROM customer WHERE role IN ('customer', 'partner') AND customer_id > $1
 ORDER BY customer_id LIMIT $2
"""

_STATUS = """
SELECT customer_id, exempt, withholding_from, withholding_until FROM tax_status
 WHERE customer_id = $1 ORDER BY version DESC LIMIT 1
"""
_INSERT_STATUS = """
INSERT INTO tax_status (customer_id, version, exempt, withholding_from, withholding_until, created_at)
SELECT $1, coalesce(max(version), 0) + 1, $2, $3, $4, $5 FROM tax_status WHERE customer_id = $1 RETURNING *
"""


async def stream_movements(conn: Connection, customer_id: UUID, after: int, through: int) -> AsyncIterator[LotMovement]:
    """Return the movements of a customer's lots from after one journal entry up to another, a few at a time.

    In the order of booking. The connection is in a transaction.
    """
    async for row in conn.cursor(_MOVEMENTS, customer_id, after, through, prefetch=_FETCHED_AT_ONCE):
        yield LotMovement(*row)


async def get_tax_status(conn: Connection | Pool, customer_id: UUID) -> TaxStatus:
    """Return what is known of a customer; nothing unless it was set."""
    row = await conn.fetchrow(_STATUS, customer_id)
    return TaxStatus(customer_id) if row is None else TaxStatus(*row)


async def add_tax_status(conn: Connection, status: TaxStatus, now: datetime) -> Record:
    """Store the next version of a customer's tax status; return its row."""
    (row,) = await conn.fetch(_INSERT_STATUS, *status, now)
    return row


async def list_customers(conn: Connection | Pool, after: UUID, limit: int) -> list[UUID]:
    """Return the next customers after an id, of all partners."""
    return [row[0] for row in await conn.fetch(_CUSTOMERS, after, limit)]
