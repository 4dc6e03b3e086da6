"""Applications and related parties as returned by both APIs: identification numbers are masked."""

from datetime import date
from typing import Annotated, Any, Literal, TypeVar
from uuid import UUID

import msgspec

from billfold.accounts.addresses import Address, Country
from billfold.accounts.customers.schemas import Name
from billfold.documents.routes import Document, render_document
from billfold.http.schemas import BankTime, one_of
from billfold.onboarding.applications import forms, types
from billfold.onboarding.applications.content import Application, content_of
from billfold.onboarding.applications.rules.requirements import UNUSABLE

Shown = TypeVar("Shown", bound=msgspec.Struct)
_SHOWN_DIGITS = 4
_IDENTITY_DOCUMENTS = frozenset({"ID_FRONT", "ID_BACK", "SELFIE", "PASSPORT"})
Masked = Annotated[str, msgspec.Meta(description="Its last characters, like *****4321.")]


class MaskedBusinessNumber(msgspec.Struct, kw_only=True):
    """An identification number of a business."""

    identification_number: Masked
    type: Annotated[str, one_of("TIN", "EIN", "NON_US_BUSINESS_ID")]
    issuing_country: Country | None = None


class MaskedPersonNumber(msgspec.Struct, kw_only=True):
    """An identification number of a person."""

    identification_number: Masked
    identification_type: Annotated[str, one_of("SSN", "PASSPORT", "NON_US_ID")]
    identification_number_issuing_country: Country | None = None


class _Shown(msgspec.Struct, kw_only=True):
    id: UUID
    status: types.ApplicationStatus
    exception_reasons: list[str]
    customer_id: Annotated[
        UUID | None, msgspec.Meta(description="The customer that the applicant became, once it is APPROVED.")
    ]
    time_created: BankTime
    updated_at: BankTime
    submitted_at: BankTime | None
    missing_requirements: Annotated[
        list[str],
        msgspec.Meta(
            description="The path of everything that is missing before it can be submitted; `related_parties` and"
            " `documents` stand for all that is missing in them."
        ),
    ]


class BusinessApplication(_Shown, kw_only=True):
    """A business application; fields that are not filled in are null."""

    name: str | None = None
    doing_business_as: str | None = None
    website: str | None = None
    entity_type: str | None = None
    identification_number: MaskedBusinessNumber | None = None
    identification_number_issuing_country: str | None = None
    address: Address | None = None
    contact: forms.Contact | None = None
    formation_date: date | None = None
    risk_info: forms.RiskInfo | None = None
    industry: forms.IndustryInfo | None = None
    agreement_consent: forms.AgreementConsent | None = None
    first_pocket: forms.FirstPocket | None = None
    object_type: Literal["BusinessApplication"] = "BusinessApplication"


class RelatedPartyApplication(msgspec.Struct, kw_only=True):
    """A person who owns, controls or represents the business; fields that are not filled in are null."""

    id: UUID
    title: str | None = None
    name: Name | None = None
    email: str | None = None
    phone_number: str | None = None
    citizenship: str | None = None
    address: Address | None = None
    date_of_birth: date | None = None
    identification_number: MaskedPersonNumber | None = None
    roles: list[types.Role] = msgspec.field(default_factory=list)
    ownership_percentage: str | None = None
    object_type: Literal["RelatedPartyApplication"] = "RelatedPartyApplication"


class DateOfBirth(msgspec.Struct, kw_only=True):
    """A date of birth, as an object."""

    date_of_birth: date


class IndividualApplication(_Shown, kw_only=True):
    """The application of a person, with its documents."""

    name: Name
    email: str
    phone_number: str
    date_of_birth: DateOfBirth
    address: Address
    identification_number: Masked
    identification_type: Annotated[str, one_of("SSN", "PASSPORT", "TIN", "DRIVERS_LICENSE", "INTERNATIONAL_ID")]
    identification_number_issuing_country: str | None = None
    citizenship_country: str
    originally_onboarded_at: BankTime | None = None
    investment_profile: forms.InvestmentProfile
    agreement_consent: forms.AgreementConsent
    first_pocket: forms.FirstPocket | None = None
    documents: list[Document]
    id_verification_documents_needed: bool
    identification_number_verification_document_needed: bool
    address_verification_document_needed: bool
    object_type: Literal["IndividualApplication"] = "IndividualApplication"


def mask_number(number: str) -> str:
    """Return an identification number with only its last characters legible: `*****4321`."""
    legible = "".join(each for each in number if each.isalnum())
    shown = min(_SHOWN_DIGITS, len(legible) // 2)
    return "*" * max(len(legible) - shown, 1) + legible[len(legible) - shown :]


def render_business(application: Application, seed: bytes) -> BusinessApplication:
    """Return a business application for display."""
    return _convert(_masked(application.form) | _shown(application, seed), BusinessApplication)


def render_individual(application: Application, seed: bytes) -> IndividualApplication:
    """Return the application of a person for display."""
    form = application.form
    assert isinstance(form, forms.IndividualForm)
    needed = {each.type for each in application.documents if each.status in UNUSABLE}
    fields: dict[str, Any] = msgspec.structs.asdict(form) | _shown(application, seed)
    fields["identification_number"] = mask_number(form.identification_number)
    fields["date_of_birth"] = DateOfBirth(date_of_birth=form.date_of_birth)
    return IndividualApplication(
        **fields,
        documents=[render_document(each) for each in application.documents],
        id_verification_documents_needed=bool(needed & _IDENTITY_DOCUMENTS),
        identification_number_verification_document_needed="IDENTIFICATION_NUMBER_VERIFICATION" in needed,
        address_verification_document_needed="ADDRESS_VERIFICATION" in needed,
    )


def render_related_party(party_id: UUID, form: forms.RelatedPartyForm) -> RelatedPartyApplication:
    """Return a related party for display."""
    return _convert(_masked(form) | {"id": party_id}, RelatedPartyApplication)


def render_related_parties(application: Application) -> list[RelatedPartyApplication]:
    """Return the related parties of an application, in the order in which they were added."""
    return [render_related_party(each, party) for each, party in application.parties.items()]


def _shown(application: Application, seed: bytes) -> dict[str, Any]:
    row = application.row
    return {
        "id": row.application_id,
        "status": row.status,
        "exception_reasons": list(row.exception_reasons),
        "customer_id": row.applicant_id if row.status == types.ApplicationStatus.APPROVED else None,
        "time_created": row.created_at,
        "updated_at": row.updated_at,
        "submitted_at": row.submitted_at,
        "missing_requirements": application.missing(seed),
    }


def _convert(fields: dict[str, Any], kind: type[Shown]) -> Shown:
    return msgspec.convert(fields, kind)


def _masked(form: forms.AnyForm | forms.RelatedPartyForm) -> dict[str, Any]:
    content = content_of(form)
    number = content.get("identification_number")
    if isinstance(number, dict):
        masked = mask_number(number["identification_number"])
        content = content | {"identification_number": number | {"identification_number": masked}}
    return content
