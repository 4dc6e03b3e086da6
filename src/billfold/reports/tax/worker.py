"""Makes tax forms, and the file for the IRS."""

import re
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import IO, Final, NamedTuple
from uuid import UUID

import structlog

from billfold.ledger.bank import Bank
from billfold.platform.clock import monotonic, wall_now
from billfold.platform.database.background_work import forget, list_failed, locked, put_aside
from billfold.platform.database.shortage import error_summary
from billfold.platform.dates import et_date
from billfold.platform.errors import InvalidInput
from billfold.platform.settings.settings import Settings
from billfold.reports.entries.store import get_account
from billfold.reports.printing import Subject, bank_of, print_signed, recipient_of
from billfold.reports.statements.store import StatementRow, StatementType
from billfold.reports.statements.worker import (
    STATEMENTS_LOCK,
    MadeStatement,
    keep_statement,
    statement_id,
    write_statements,
)
from billfold.reports.tax import store
from billfold.reports.tax.form_1099 import FormIssue, compose_form
from billfold.reports.tax.irs_file import IrsFile, Payer, require_records
from billfold.reports.tax.rules import Filing, TaxForm, TaxYear, filing_of, year_bounds, years_due
from billfold.reports.tax.store import Recipient, TaxReading, open_recipient, read_tax_years

_TEST_VALUES: Final = {
    "tax_control_code": "00000",
    "tax_number": "00-0000000",
    "tax_contact": "Tax Department",
    "tax_email": "tax@bank.example",
}
_CONTROL_CODE = re.compile("[0-9A-Z]{5}")
_TAX_NUMBER = re.compile("[0-9]{2}-?[0-9]{7}")


class WrittenFile(NamedTuple):
    """The number of returns in a file, the customers without a taxpayer number, and those that failed."""

    returns: int
    without_number: list[UUID]
    failed: dict[UUID, Exception]


def payer_of(settings: Settings) -> Payer:
    """Return the bank as a payer. A sandbox, which writes test files, has defaults. Raises InvalidInput."""
    values = {name: getattr(settings, name) for name in _TEST_VALUES}
    if not settings.is_production:
        values = {name: value or _TEST_VALUES[name] for name, value in values.items()}
    for name, value in values.items():
        if value is None:
            raise InvalidInput.at(name, msg="is not set")
    if not _CONTROL_CODE.fullmatch(values["tax_control_code"]):
        raise InvalidInput.at("tax_control_code", msg="must be five capital letters and digits")
    if not _TAX_NUMBER.fullmatch(values["tax_number"]):
        raise InvalidInput.at("tax_number", msg="must be nine digits, like 12-3456789")
    return Payer(
        tin=values["tax_number"].replace("-", ""),
        control_code=values["tax_control_code"],
        name=settings.bank_name,
        address=settings.bank_address,
        phone=settings.bank_phone,
        contact=values["tax_contact"],
        email=values["tax_email"],
    )


async def write_irs_file(
    bank: Bank,
    year: int,
    out: IO[bytes],
    *,
    corrected_since: datetime | None = None,
    only: Collection[UUID] = (),
    line_ends: bool = False,
) -> WrittenFile:
    """Write the returns of a calendar year into a seekable file: all, corrected ones, or some customers'.

    The forms of exempt and foreign recipients are omitted, and so is interest below the minimum. A customer whose
    figures fail is omitted and named. Raises InvalidInput.
    """
    try:
        file = IrsFile(out, payer_of(bank.settings), year, line_ends=line_ends)
    except ValueError as error:
        raise InvalidInput.at("bank_address", msg=str(error)) from None
    filing = _CustomerFiling(bank, file, year, corrected_since)
    for form in TaxForm:
        async for customer_id in store.stream_customers(bank.pool):
            if not only or customer_id in only:
                await filing.add(form, customer_id)
    this_year = et_date(await bank.now()).year
    file.end(test=not bank.settings.is_production, prior_year=year < this_year - 1)
    return WrittenFile(file.payees, list(filing.without_number), filing.failed)


class _CustomerFiling:
    """Adds the returns of customers to a file, and collects those without a number."""

    def __init__(self, bank: Bank, file: IrsFile, year: int, corrected_since: datetime | None) -> None:
        self._bank, self._file, self._year, self._corrected_since = bank, file, year, corrected_since
        self.without_number: dict[UUID, None] = {}
        self.failed: dict[UUID, Exception] = {}

    async def add(self, form: TaxForm, customer_id: UUID) -> None:
        """Add a customer's returns of a form, if the IRS receives them.

        All returns of both forms are computed first: a customer that fails has none in the file, and is named.
        """
        if customer_id in self.failed:
            return
        try:
            recipient, years_by_form = await self._returns(customer_id)
        except Exception as error:  # noqa: BLE001 - whatever it is, the other customers are filed
            self.failed[customer_id] = error
            return
        years = years_by_form[form]
        if years and not recipient.tin:
            self.without_number[customer_id] = None
        for each in years:
            self._file.add(form, recipient, each, corrected=self._corrected_since is not None)

    async def _returns(self, customer_id: UUID) -> tuple[Recipient, dict[TaxForm, list[TaxYear]]]:
        """Return the Pockets of a customer to be filed, by form. Raises ValueError if one does not fit a record."""
        reading = await read_tax_years(self._bank, customer_id, self._year)
        recipient = await open_recipient(self._bank, reading.status)
        found: dict[TaxForm, list[TaxYear]] = {}
        for form in TaxForm:
            years = [each for each in reading.years if form in each.forms]
            if not years or filing_of(form, years, recipient.filing) != Filing.FILED:
                years = []
            elif self._corrected_since is not None:
                years = await self._corrected(form, customer_id, years)
            for each in years:
                require_records(form, recipient, each)
            found[form] = years
        return recipient, found

    async def _corrected(self, form: TaxForm, customer_id: UUID, years: list[TaxYear]) -> list[TaxYear]:
        assert self._corrected_since is not None
        made = await store.list_forms(self._bank.pool, customer_id, self._year)
        corrected = {
            pocket_id
            for (pocket_id, of), last in made.items()
            if of == form and last.version > 1 and last.created_at >= self._corrected_since
        }
        return [each for each in years if each.pocket_id in corrected]


class _Draft(NamedTuple):
    form: TaxForm
    year: TaxYear
    version: int = 1
    reason: str | None = None


async def make_forms(bank: Bank, customer_id: UUID, year: int) -> int:
    """Make the missing forms of a customer for a calendar year, and notify its team; return how many."""
    reading = await read_tax_years(bank, customer_id, year)
    made = await store.list_forms(bank.pool, customer_id, year)
    drafts = [_Draft(form, each) for each in reading.years for form in each.forms if (each.pocket_id, form) not in made]
    return len(await _make_forms(bank, reading, drafts, title=f"Tax forms of {year}")) if drafts else 0


async def correct_forms(bank: Bank, customer_id: UUID, year: int, reason: str) -> list[StatementRow]:
    """Make a new version of every form of a customer's calendar year, from current data."""
    reading = await read_tax_years(bank, customer_id, year)
    years = {each.pocket_id: each for each in reading.years}
    drafts = [
        _Draft(form, years.get(pocket_id) or TaxYear(pocket_id, year, [], 0), made.version + 1, reason)
        for (pocket_id, form), made in (await store.list_forms(bank.pool, customer_id, year)).items()
    ]
    return await _make_forms(bank, reading, drafts, title=f"Corrected tax forms of {year}") if drafts else []


async def _make_forms(bank: Bank, reading: TaxReading, drafts: Sequence[_Draft], title: str) -> list[StatementRow]:
    customer_id = reading.status.customer_id
    ends_at = year_bounds(drafts[0].year.year)[1]
    recipient = await open_recipient(bank, reading.status)
    address = await recipient_of(bank, customer_id)
    payer, letterhead, now = payer_of(bank.settings), bank_of(bank.settings), await bank.now()
    made = list[MadeStatement]()
    for draft in drafts:
        pocket_id = draft.year.pocket_id
        account = await get_account(bank.pool, customer_id, pocket_id, ends_at)
        issue = FormIssue(
            bank=letterhead,
            payer_tin=f"{payer.tin[:2]}-{payer.tin[2:]}",
            recipient=recipient,
            address=address,
            pocket=account.name,
            filing=filing_of(draft.form, reading.years, recipient.filing),
            made_at=now,
            version=draft.version,
            reason=draft.reason,
        )
        subject = Subject(customer_id, pocket_id, account.name, ends_at, reading.position)
        pdf = await print_signed(bank, compose_form(draft.form, draft.year, issue), subject)
        made.append(await _store_form(bank, reading, draft, pdf=pdf, issue=issue))
    await write_statements(bank, made, title)
    return [each.row for each in made]


async def _store_form(bank: Bank, reading: TaxReading, draft: _Draft, pdf: bytes, issue: FormIssue) -> MadeStatement:
    year, version = draft.year.year, draft.version
    row = StatementRow(
        customer_id=reading.status.customer_id,
        statement_id=statement_id(draft.year.pocket_id, draft.form, str(year), version),
        pocket_id=draft.year.pocket_id,
        type=StatementType(draft.form),
        key=str(year),
        version=version,
        reason=draft.reason,
        opening=None,
        closing=None,
        entry_no=reading.position.entry_no,
        created_at=issue.made_at,
    )
    return await keep_statement(bank, row, pdf, f"{year}-{draft.form.lower()}-{draft.year.account[-4:]}")


log = structlog.get_logger(__name__)

_FAILED_FORMS: Final = "tax forms"
PAUSE_SECONDS: Final = 5.0
PAUSE_AFTER_FAILURE_SECONDS: Final = 600.0


class TaxFormMaker:
    """A task of the worker. It periodically checks for a finished year."""

    def __init__(self) -> None:
        self._next_at = 0.0
        self._first_year: int | None = None

    async def __call__(self, bank: Bank) -> int:
        """Make the forms that are due; return how many."""
        if monotonic() < self._next_at:
            return 0
        made, pause = 0, PAUSE_SECONDS
        # Kept, because the first Pocket does not change and finding it takes a full scan.
        self._first_year = self._first_year or await store.first_year(bank.pool)
        finished = await store.list_finished(bank.pool)
        for year in years_due(self._first_year, finished, await bank.now()):
            async with locked(bank.pool, STATEMENTS_LOCK) as conn:
                if conn is None:
                    break
                forms, failed = await make_year(bank, year)
                made += forms
                if failed:
                    pause = PAUSE_AFTER_FAILURE_SECONDS
        self._next_at = monotonic() + pause
        return made


async def make_year(bank: Bank, year: int) -> tuple[int, int]:
    """Make the missing forms of a calendar year; return how many, and the number of customers that failed.

    The year is finished if none failed: a customer whose forms fail does not delay the others.
    """
    made, failed = 0, dict[UUID, Exception]()
    async for customer_id in store.stream_customers(bank.pool):
        try:
            made += await make_forms(bank, customer_id, year)
        except Exception as error:  # noqa: BLE001 - whatever it is, the other customers get theirs
            failed[customer_id] = error
    for customer_id, why in failed.items():
        log.error("tax_forms_failed", customer_id=str(customer_id), year=year, error=error_summary(why))
    await _record_failures(bank, year, failed)
    if not failed:
        await store.finish(bank.pool, year, await bank.now())
    if made or failed:
        log.info("tax_forms_made", year=year, made=made, failed=len(failed))
    return made, len(failed)


async def _record_failures(bank: Bank, year: int, failed: Mapping[UUID, Exception]) -> None:
    """Replace the record of failed customers that the bank's health check shows."""
    tries = {each.item: each.tries for each in await list_failed(bank.pool) if each.kind == _FAILED_FORMS}
    items = {f"{year} {customer_id}": error for customer_id, error in failed.items()}
    done = [item for item in tries if item.startswith(f"{year} ") and item not in items]
    await forget(bank.pool, _FAILED_FORMS, done)
    for item, error in items.items():
        tried = tries.get(item, 0) + 1
        await put_aside(bank.pool, _FAILED_FORMS, item, error, now=wall_now(), tries=tried)
