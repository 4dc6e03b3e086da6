"""Makes the tax forms of a customer: figured, printed, kept, and written down with a notification at once."""

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from billfold.ledger.bank import Bank
from billfold.platform.ids import command_id
from billfold.reports.downloads import files
from billfold.reports.entries.store import get_account
from billfold.reports.printing.printing import bank_of
from billfold.reports.printing.recipients import recipient_of
from billfold.reports.printing.signing import Subject, print_signed
from billfold.reports.statements.making import PDF, MadeStatement, write_statements
from billfold.reports.statements.types import StatementRow, StatementType
from billfold.reports.tax import store
from billfold.reports.tax.figures import TaxReading, read_tax_years
from billfold.reports.tax.filing import payer_of
from billfold.reports.tax.forms import FormIssue, compose_form
from billfold.reports.tax.recipients import open_recipient
from billfold.reports.tax.rules import filing_of, year_bounds
from billfold.reports.tax.types import TaxForm, TaxYear


class _Draft(NamedTuple):
    form: TaxForm
    year: TaxYear
    version: int = 1
    reason: str | None = None


async def make_forms(bank: Bank, customer_id: UUID, year: int) -> int:
    """Make the forms of a calendar year that a customer lacks, and notify its team; return how many."""
    reading = await read_tax_years(bank, customer_id, year)
    made = await store.list_forms(bank.pool, customer_id, year)
    drafts = [_Draft(form, each) for each in reading.years for form in each.forms if (each.pocket_id, form) not in made]
    return len(await _make(bank, reading, drafts, title=f"Tax forms of {year}")) if drafts else 0


async def correct_forms(bank: Bank, customer_id: UUID, year: int, reason: str) -> list[StatementRow]:
    """Make another version of every form of a customer's calendar year, of what is known today."""
    reading = await read_tax_years(bank, customer_id, year)
    years = {each.pocket_id: each for each in reading.years}
    drafts = [
        _Draft(form, years.get(pocket_id) or TaxYear(pocket_id, year, [], 0), made.version + 1, reason)
        for (pocket_id, form), made in (await store.list_forms(bank.pool, customer_id, year)).items()
    ]
    return await _make(bank, reading, drafts, title=f"Corrected tax forms of {year}") if drafts else []


async def _make(bank: Bank, reading: TaxReading, drafts: Sequence[_Draft], title: str) -> list[StatementRow]:
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
        made.append(await _keep(bank, reading, draft, pdf=pdf, issue=issue))
    await write_statements(bank, made, title)
    return [each.row for each in made]


async def _keep(bank: Bank, reading: TaxReading, draft: _Draft, pdf: bytes, issue: FormIssue) -> MadeStatement:
    year, version = draft.year.year, draft.version
    row = StatementRow(
        customer_id=reading.status.customer_id,
        statement_id=command_id(f"statement:{draft.form}:{year}:{version}", draft.year.pocket_id),
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
    suffix = "" if version == 1 else f"-v{version}"
    name = f"{year}-{draft.form.lower()}-{draft.year.account[-4:]}{suffix}.pdf"
    ids = (row.customer_id, row.statement_id)
    return MadeStatement(row, await files.keep_file(bank, ids, pdf, name=name, media_type=PDF, at=issue.made_at))
