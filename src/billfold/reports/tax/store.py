"""Reads movements of lots and recipients for tax forms, and records runs.

The status is what the customer certified (Form W-9) or the IRS notified.

The taxpayer identification number stands in the sealed application only. It is opened here, for the file of the IRS;
forms show its last four digits.
"""

import re
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

import msgspec
from asyncpg import Record
from typing_extensions import override

from billfold.accounts import addresses, profiles
from billfold.audit.record import audited
from billfold.ledger.bank import Bank
from billfold.ledger.directory import find_customer
from billfold.ledger.types import Origin
from billfold.onboarding.applications import store
from billfold.onboarding.applications.content import open_application
from billfold.onboarding.applications.forms import AnyForm, IndividualForm
from billfold.platform.crypto import fingerprint
from billfold.platform.database.connection import Connection, Db, Pool
from billfold.platform.dates import et_date
from billfold.platform.errors import NotFound
from billfold.reports.entries.reader import current_position
from billfold.reports.entries.store import last_entry_before
from billfold.reports.entries.types import LedgerPosition
from billfold.reports.tax import rules
from billfold.reports.tax.rules import Filing, TaxStatus, TinType

_CORPORATIONS = frozenset({"CORPORATE", "INCORPORATED_ASSOCIATION"})
_FOREIGN_NUMBERS = frozenset({"NON_US_BUSINESS_ID", "PASSPORT", "INTERNATIONAL_ID"})
_TINS = frozenset({"EIN", "TIN", "SSN"})
_INDIVIDUAL = "INDIVIDUAL"
_PERSONS = frozenset({_INDIVIDUAL, "SOLE_PROPRIETOR"})


class Recipient(msgspec.Struct, frozen=True, kw_only=True):
    """A recipient of forms. `tin` is nine digits, empty if the bank has none."""

    customer_id: UUID
    name: str
    is_individual: bool
    address: addresses.Address | None
    tin: str
    tin_type: TinType
    filing: Filing

    @property
    def masked_tin(self) -> str:
        """The masked number for a form: `XXX-XX-6789`, or `XX-XXX6789` for an employer."""
        if not self.tin:
            return "not on file"
        return f"{'XX-XXX' if self.tin_type == TinType.EIN else 'XXX-XX-'}{self.tin[-4:]}"

    @override
    def __repr__(self) -> str:
        """Return the id, without personal data."""
        return f"Recipient({self.customer_id})"


async def open_recipient(bank: Bank, status: TaxStatus) -> Recipient:
    """Return a customer as a recipient. Raises NotFound."""
    row = await find_customer(bank.pool, status.customer_id)
    if row is None:
        raise NotFound("There is no such customer.")
    customer = await profiles.open_profile(bank, row)
    number = _number_of(await _find_form(bank, status.customer_id))
    tin, tin_type = number.to_tin()
    return Recipient(
        customer_id=status.customer_id,
        name=row.name,
        is_individual=row.type == "INDIVIDUAL",
        address=addresses.address_of(customer),
        tin=tin,
        tin_type=tin_type,
        filing=_filing_of(number, status),
    )


async def _find_form(bank: Bank, customer_id: UUID) -> AnyForm | None:
    """Return the customer's application form; None if it has none, or if it was destroyed."""
    row = await store.find_by_applicant(bank.pool, customer_id)
    if row is None:
        return None
    try:
        return (await open_application(bank.pool, bank, row)).form
    except NotFound:
        return None


class _Number(NamedTuple):
    """A customer's number: as written, its kind, and the type of business."""

    written: str = ""
    kind: str = ""
    entity: str = ""

    @property
    def is_foreign(self) -> bool:
        return self.kind in _FOREIGN_NUMBERS

    def to_tin(self) -> tuple[str, TinType]:
        """Return nine digits and their type; empty for a number that the IRS does not know."""
        digits = re.sub(r"[ -]", "", self.written)
        if self.kind not in _TINS or not re.fullmatch("[0-9]{9}", digits):
            return "", TinType.UNKNOWN
        is_person = self.kind == "SSN" or (self.kind == "TIN" and self.entity in _PERSONS)
        return digits, TinType.SSN if is_person else TinType.EIN


def _number_of(form: AnyForm | None) -> _Number:
    if isinstance(form, IndividualForm):
        return _Number(form.identification_number, form.identification_type, _INDIVIDUAL)
    if form is None or not form.identification_number:
        return _Number()
    number = form.identification_number
    return _Number(number.identification_number, number.type, form.entity_type or "")


def _filing_of(number: _Number, status: TaxStatus) -> Filing:
    if number.entity in _CORPORATIONS if status.exempt is None else status.exempt:
        return Filing.EXEMPT
    return Filing.FOREIGN if number.is_foreign else Filing.FILED


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


async def stream_movements(
    conn: Connection, customer_id: UUID, after: int, through: int
) -> AsyncIterator[rules.LotMovement]:
    """Yield the movements of a customer's lots after one journal entry up to another, in batches.

    In booking order. The connection must be in a transaction.
    """
    async for row in conn.cursor(_MOVEMENTS, customer_id, after, through, prefetch=_FETCHED_AT_ONCE):
        yield rules.LotMovement(*row)


async def get_tax_status(conn: Db, customer_id: UUID) -> TaxStatus:
    """Return a customer's tax status; the default if none was set."""
    row = await conn.fetchrow(_STATUS, customer_id)
    return TaxStatus(customer_id) if row is None else TaxStatus(*row)


async def add_tax_status(conn: Connection, status: TaxStatus, now: datetime) -> Record:
    """Insert the next version of a customer's tax status; return its row."""
    (row,) = await conn.fetch(_INSERT_STATUS, *status, now)
    return row


async def stream_customers(pool: Pool) -> AsyncIterator[UUID]:
    """Yield the customers of all partners, in the order of their ids."""
    last = UUID(int=0)
    while page := await pool.fetch(_CUSTOMERS, last, _CUSTOMERS_AT_ONCE):
        for row in page:
            last = row["customer_id"]
            yield last


async def list_forms(conn: Db, customer_id: UUID, year: int) -> dict[tuple[UUID, rules.TaxForm], MadeForm]:
    """Return a customer's forms of a calendar year, by Pocket and form."""
    rows = await conn.fetch(_FORMS, customer_id, str(year))
    return {(pocket_id, rules.TaxForm(form)): MadeForm(*made) for pocket_id, form, *made in rows}


async def first_year(conn: Db) -> int | None:
    """Return the year in which the first Pocket was opened, Eastern time, or None."""
    opened_at: datetime | None = await conn.fetchval(_FIRST_OPENED)
    return None if opened_at is None else et_date(opened_at).year


async def list_finished(conn: Db) -> set[int]:
    """Return the years whose forms are complete."""
    return {row["year"] for row in await conn.fetch(_FINISHED)}


async def finish(conn: Db, year: int, at: datetime) -> None:
    """Record that every form of a year is made."""
    await conn.execute(_FINISH, year, at)


class TaxReading(NamedTuple):
    """A customer's calendar year: its status, each Pocket with sales or maturities, and how far the log was read."""

    status: TaxStatus
    years: list[rules.TaxYear]
    position: LedgerPosition


async def read_tax_years(bank: Bank, customer_id: UUID, year: int) -> TaxReading:
    """Return the reportable figures of a customer's Pockets for a calendar year, after doing work due by its end."""
    ends_at = rules.year_bounds(year)[1]
    position = await current_position(bank, customer_id, ends_at)
    async with bank.pool.acquire() as conn, conn.transaction(isolation="repeatable_read", readonly=True):
        status = await get_tax_status(conn, customer_id)
        after = await last_entry_before(conn, customer_id, rules.first_purchase(year))
        stream = stream_movements(conn, customer_id, after, position.entry_no)
        replay, disposals = rules.LotReplay(lambda cusip: bank.market.bill(cusip).maturity), list[rules.Disposal]()
        async for each in stream:
            # For a bill that matured before the year began, lots may have been bought before the stream begins.
            if rules.is_relevant(bank.market.bill(each.cusip).maturity, year):
                disposal = replay.play(each)
                disposals += [disposal] if disposal is not None else []
    return TaxReading(status, rules.tax_years(year, disposals, status), position)


async def set_tax_status(bank: Bank, status: TaxStatus) -> None:
    """Store a status as the next version, and record its fingerprint in the audit log."""
    async with audited(bank, status.customer_id, Origin.operator(), "tax_status.set") as action:
        row = await add_tax_status(action.conn, status, await bank.now(action.conn))
        columns = [(name, row[name]) for name in sorted(row.keys()) if row[name] is not None]
        action.resource_id = str(row["version"])
        action.proves("tax_status", row["version"], fingerprint(columns))
