"""The figures of a customer's tax year, read from the ledger, and the tax status that an operator sets.

The status is what the customer certified (Form W-9) or the IRS notified.
"""

from collections.abc import AsyncIterator
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

from asyncpg import Record

from billfold.audit.record import audited
from billfold.ledger.bank import Bank
from billfold.ledger.types import Origin
from billfold.platform.clock import wall_now
from billfold.platform.crypto import fingerprint
from billfold.platform.database.connection import Connection, Db, Pool
from billfold.platform.dates import et_date
from billfold.reports.entries.reader import current_position
from billfold.reports.entries.store import last_entry_before
from billfold.reports.entries.types import LedgerPosition
from billfold.reports.tax.rules import LotReplay, first_purchase, is_relevant, tax_years, year_bounds
from billfold.reports.tax.types import Disposal, LotMovement, TaxForm, TaxStatus, TaxYear

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


async def get_tax_status(conn: Db, customer_id: UUID) -> TaxStatus:
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


async def list_forms(conn: Db, customer_id: UUID, year: int) -> dict[tuple[UUID, TaxForm], MadeForm]:
    """Return a customer's forms of a calendar year, by Pocket and form."""
    rows = await conn.fetch(_FORMS, customer_id, str(year))
    return {(pocket_id, TaxForm(form)): MadeForm(*made) for pocket_id, form, *made in rows}


async def first_year(conn: Db) -> int | None:
    """Return the year in which the first Pocket was opened, Eastern time; None before."""
    opened_at: datetime | None = await conn.fetchval(_FIRST_OPENED)
    return None if opened_at is None else et_date(opened_at).year


async def list_finished(conn: Db) -> set[int]:
    """Return the years of which every form is made."""
    return {row["year"] for row in await conn.fetch(_FINISHED)}


async def finish(conn: Db, year: int, at: datetime) -> None:
    """Note that every form of a year is made."""
    await conn.execute(_FINISH, year, at)


class TaxReading(NamedTuple):
    """A customer's calendar year: its status, each Pocket with sales or maturities, and how far the log was read."""

    status: TaxStatus
    years: list[TaxYear]
    position: LedgerPosition


async def read_tax_years(bank: Bank, customer_id: UUID, year: int) -> TaxReading:
    """Return what a customer's Pockets have to report for a calendar year. What was due by its end is done first."""
    ends_at = year_bounds(year)[1]
    position = await current_position(bank, customer_id, ends_at)
    async with bank.pool.acquire() as conn, conn.transaction(isolation="repeatable_read", readonly=True):
        status = await get_tax_status(conn, customer_id)
        after = await last_entry_before(conn, customer_id, first_purchase(year))
        stream = stream_movements(conn, customer_id, after, position.entry_no)
        replay, disposals = LotReplay(lambda cusip: bank.market.bill(cusip).maturity), list[Disposal]()
        async for each in stream:
            # Of a bill that was gone before the year began the lots may have been bought before the stream does.
            if is_relevant(bank.market.bill(each.cusip).maturity, year):
                disposal = replay.play(each)
                disposals += [disposal] if disposal is not None else []
    return TaxReading(status, tax_years(year, disposals, status), position)


async def set_tax_status(bank: Bank, status: TaxStatus) -> None:
    """Store it as the next version, in the audit log with its fingerprint."""
    async with audited(
        bank.pool,
        bank.vault,
        status.customer_id,
        Origin.operator(),
        "tax_status.set",
        resource=("tax_status", None),
        now=wall_now(),
    ) as action:
        row = await add_tax_status(action.conn, status, await bank.now(action.conn))
        columns = [(name, row[name]) for name in sorted(row.keys()) if row[name] is not None]
        action.resource_id = str(row["version"])
        action.proves("tax_status", row["version"], fingerprint(columns))
