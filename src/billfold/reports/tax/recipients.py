"""Who a tax form is about: name, address, taxpayer identification number, and whether the IRS receives the form.

The number stands in the sealed application alone. It is opened here, for the file of the IRS; forms show its last four.
"""

import re
from typing import NamedTuple
from uuid import UUID

import msgspec
from typing_extensions import override

from billfold.accounts.addresses import Address, address_of
from billfold.accounts.profiles import open_profile
from billfold.ledger.bank import Bank
from billfold.ledger.directory import find_customer
from billfold.onboarding.applications import store as application_store
from billfold.onboarding.applications.content import open_application
from billfold.onboarding.applications.forms import AnyForm, IndividualForm
from billfold.platform.errors import NotFound
from billfold.reports.tax.types import Filing, TaxStatus, TinType

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
    address: Address | None
    tin: str
    tin_type: TinType
    filing: Filing

    @property
    def masked_tin(self) -> str:
        """The number as its owner may see it on a form: `XXX-XX-6789`, or `XX-XXX6789` of an employer."""
        if not self.tin:
            return "not on file"
        return f"{'XX-XXX' if self.tin_type == TinType.EIN else 'XXX-XX-'}{self.tin[-4:]}"

    @override
    def __repr__(self) -> str:
        """Return the id and nothing personal."""
        return f"Recipient({self.customer_id})"


async def open_recipient(bank: Bank, status: TaxStatus) -> Recipient:
    """Return the recipient that a customer is. Raises NotFound."""
    row = await find_customer(bank.pool, status.customer_id)
    if row is None:
        raise NotFound("There is no such customer.")
    customer = await open_profile(bank, row)
    number = _number_of(await _find_form(bank, status.customer_id))
    tin, tin_type = number.to_tin()
    return Recipient(
        customer_id=status.customer_id,
        name=row.name,
        is_individual=row.type == "INDIVIDUAL",
        address=address_of(customer),
        tin=tin,
        tin_type=tin_type,
        filing=_filing_of(number, status),
    )


async def _find_form(bank: Bank, customer_id: UUID) -> AnyForm | None:
    """Return what the customer said in its application; None where there was none, or it was destroyed."""
    row = await application_store.find_by_applicant(bank.pool, customer_id)
    if row is None:
        return None
    try:
        return (await open_application(bank.pool, bank, row)).form
    except NotFound:
        return None


class _Number(NamedTuple):
    """The number a customer is known by: as it was written, of which kind, and the type of business."""

    written: str = ""
    kind: str = ""
    entity: str = ""

    @property
    def is_foreign(self) -> bool:
        return self.kind in _FOREIGN_NUMBERS

    def to_tin(self) -> tuple[str, TinType]:
        """Return nine digits and what they are; nothing for what the IRS does not know."""
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
