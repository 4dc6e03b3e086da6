"""The file for the IRS, of all customers whose forms it receives: read one customer after another, kept nowhere."""

import re
from collections.abc import Collection
from datetime import datetime
from typing import IO, Final, NamedTuple
from uuid import UUID

from billfold.ledger.bank import Bank
from billfold.platform.dates import et_date
from billfold.platform.errors import InvalidInput
from billfold.platform.settings.settings import Settings
from billfold.reports.tax import store
from billfold.reports.tax.irs_file import IrsFile, Payer, require_records
from billfold.reports.tax.recipients import Recipient, open_recipient
from billfold.reports.tax.rules import filing_of
from billfold.reports.tax.store import read_tax_years
from billfold.reports.tax.types import Filing, TaxForm, TaxYear

_TEST_VALUES: Final = {
    "tax_control_code": "00000",
    "tax_number": "00-0000000",
    "tax_contact": "Tax Department",
    "tax_email": "tax@bank.example",
}
_CONTROL_CODE = re.compile("[0-9A-Z]{5}")
_TAX_NUMBER = re.compile("[0-9]{2}-?[0-9]{7}")


class WrittenFile(NamedTuple):
    """How many returns a file has, which customers in it have no taxpayer identification number, and which failed."""

    returns: int
    without_number: list[UUID]
    failed: dict[UUID, Exception]


def payer_of(settings: Settings) -> Payer:
    """Return the bank as a payer. A sandbox, whose files are tests, has defaults. Raises InvalidInput."""
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
    """Write the returns of a calendar year into a file that can be rewound: all, those corrected since, or of some.

    The forms of exempt and foreign recipients are not in it, nor is interest below the minimum. A customer whose
    figures fail is left out and named. Raises InvalidInput.
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
    """Adds the returns of customers to a file; notes who has no number."""

    def __init__(self, bank: Bank, file: IrsFile, year: int, corrected_since: datetime | None) -> None:
        self._bank, self._file, self._year, self._corrected_since = bank, file, year, corrected_since
        self.without_number: dict[UUID, None] = {}
        self.failed: dict[UUID, Exception] = {}

    async def add(self, form: TaxForm, customer_id: UUID) -> None:
        """Add a customer's returns of a form, if the IRS receives them.

        All returns of both forms are figured before: a customer that fails has none in the file, and is named.
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
        """Return the Pockets of a customer whose figures are filed by form. Raises ValueError if one fits no record."""
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
