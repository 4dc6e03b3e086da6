"""Reads of what tax forms are made of, and the tax status of customers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime
from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import UUID

from billfold.platform.dates import et_date
from billfold.reports.tax.types import LotMovement, TaxForm, TaxStatus

if TYPE_CHECKING:
    from asyncpg import Record

    from billfold.platform.database.connection import (Connection, Pool)

_FETCHED_AT_ONCE: Final = 2_000
_CUSTOMERS_AT_ONCE: Final = 500
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

_FORMS = """
SELECT DISTINCT ON (pocket_id, type) pocket_id, type, version, created_at FROM statement
 WHERE customer_id = $1 AND key = $2 ORDER BY pocket_id, type, version DESC
"""
_FIRST_OPENED = "SELECT min(opened_at) FROM pocket"
_FINISHED = "SELECT year FROM tax_run"
_FINISH = "INSERT INTO tax_run (year, finished_at) VALUES ($1, $2) ON CONFLICT DO NOTHING"


class MadeForm(NamedTuple):
    """The last version of a form, and when it was made."""

    version: int
    created_at: datetime


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


async def stream_customers(pool: Pool) -> AsyncIterator[UUID]:
    """Yield the customers of all partners, in the order of their ids."""
    last = UUID(int=0)
    while page := await pool.fetch(_CUSTOMERS, last, _CUSTOMERS_AT_ONCE):
        for row in page:
            last = row["customer_id"]
            yield last


async def list_forms(conn: Connection | Pool, customer_id: UUID, year: int) -> dict[tuple[UUID, TaxForm], MadeForm]:
    """Return a customer's forms of a calendar year, by Pocket and form."""
    rows = await conn.fetch(_FORMS, customer_id, str(year))
    return {(pocket_id, TaxForm(form)): MadeForm(*made) for pocket_id, form, *made in rows}


async def first_year(conn: Connection | Pool) -> int | None:
    """Return the year in which the first Pocket was opened, Eastern time; None before."""
    opened_at: datetime | None = await conn.fetchval(_FIRST_OPENED)
    return None if opened_at is None else et_date(opened_at).year


async def list_finished(conn: Connection | Pool) -> set[int]:
    """Return the years of which every form is made."""
    return {row["year"] for row in await conn.fetch(_FINISHED)}


async def finish(conn: Connection | Pool, year: int, at: datetime) -> None:
    """Note that every form of a year is made."""
    await conn.execute(_FINISH, year, at)
