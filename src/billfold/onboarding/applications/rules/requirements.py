"""Fields that an application needs before it can be submitted, and the documents it requires."""

from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Final, NamedTuple
from uuid import UUID

from msgspec import UNSET

from billfold.documents.ports import DocumentRow
from billfold.onboarding.applications.forms import AnyForm, BusinessForm, IndividualForm, RelatedPartyForm
from billfold.onboarding.applications.rules.fields import share_of
from billfold.onboarding.applications.types import Role

OWNER_SHARE: Final = Decimal("0.25")
"""Minimum share of a beneficial owner."""
UNUSABLE: Final = frozenset({"PENDING_UPLOAD", "INVALID"})
"""Statuses of a document without a valid file."""
_REQUIRED: Final = (
    "name",
    "entity_type",
    "identification_number",
    "address",
    "contact",
    "formation_date",
    "risk_info",
    "industry",
    "agreement_consent",
)
_REQUIRED_OF_CONTACT: Final = ("name", "phone_number", "email")
_REQUIRED_OF_RISK: Final = (
    "risk_categories",
    "has_current_enforcement_actions",
    "business_activity_location",
    "source_of_funds",
    "account_usage",
    "annual_revenue",
    "monthly_transactions",
    "first_month_deposit",
)
_REQUIRED_OF_PARTY: Final = ("name", "date_of_birth", "address", "identification_number", "roles")
_BY_ENTITY: Final[Mapping[str, tuple[str, ...]]] = {
    "CORPORATE": ("ARTICLES_OF_INCORPORATION", "BYLAWS"),
    "LLC": ("ARTICLES_OF_ORGANIZATION", "OPERATING_AGREEMENT"),
    "PARTNERSHIP": ("PARTNERSHIP_AGREEMENT",),
    "INCORPORATED_ASSOCIATION": ("ARTICLES_OF_ASSOCIATION",),
    "UNINCORPORATED_ASSOCIATION": ("ARTICLES_OF_ASSOCIATION",),
}
_CRYPTOCURRENCY: Final = (
    "LEGAL_ANALYSIS_OF_BUSINESS_MODEL",
    "COINS_AND_TOKENS_LISTED_AND_OFFERED",
    "COIN_RATING_POLICY_AND_PROCEDURES",
    "TYPE_OF_BLOCKCHAIN_ANALYTICS_USED",
    "MARKET_MANIPULATION_POLICY",
    "BSA_AML_OFAC_POLICIES",
)

Parties = Mapping[UUID, RelatedPartyForm]


class DocumentRequest(NamedTuple):
    """A required document, of the applicant or of a related party."""

    related_party_id: UUID | None
    type: str


def required_documents(form: AnyForm, parties: Parties, reviewed: Iterable[str] = ()) -> list[DocumentRequest]:
    """Return the documents that the data requires, and those that a review has requested in addition."""
    own = _of_business(form, parties) if isinstance(form, BusinessForm) else _of_individual(form)
    found = [DocumentRequest(None, each) for each in (*own, *reviewed)]
    for party_id, party in parties.items():
        if party.identification_number:
            kind = party.identification_number.identification_type
            found += [DocumentRequest(party_id, each) for each in _identity_documents(kind)]
    return list(dict.fromkeys(found))


def missing_requirements(form: AnyForm, parties: Parties, documents: Iterable[DocumentRow]) -> list[str]:
    """Return the path of everything that is still missing.

    `related_parties` and `documents` stand for all that is missing in them, next to the path of each gap.
    """
    if isinstance(form, IndividualForm):
        return [*_missing_documents(documents)]
    return [*_missing_fields(form), *_missing_parties(parties), *_missing_documents(documents)]


def is_owner(party: RelatedPartyForm) -> bool:
    """Return whether a related party is a beneficial owner."""
    return Role.BENEFICIAL_OWNER in (party.roles or ()) or share_of(party) >= OWNER_SHARE


def _missing_fields(form: BusinessForm) -> Iterator[str]:
    inner = {"contact": _REQUIRED_OF_CONTACT, "risk_info": _REQUIRED_OF_RISK}
    for name in _REQUIRED:
        value = getattr(form, name)
        if not value:
            yield name
        else:
            for each in inner.get(name, ()):
                # An empty list of categories and False are answers.
                if (given := getattr(value, each)) is None or given is UNSET:
                    yield f"{name}.{each}"
    if form.industry and form.industry.industry == "OTHER" and not form.industry.other_industry:
        yield "industry.other_industry"


def _missing_parties(parties: Parties) -> Iterator[str]:
    roles = {role for party in parties.values() for role in party.roles or ()}
    gaps = [
        f"related_parties.{role}" for role in (Role.CONTROL_PERSON, Role.AUTHORIZED_REPRESENTATIVE) if role not in roles
    ]
    gaps += [
        f"related_parties.{party_id}.{name}"
        for party_id, party in parties.items()
        for name in _REQUIRED_OF_PARTY
        if not getattr(party, name)
    ]
    if gaps:
        yield "related_parties"
        yield from gaps


def _missing_documents(documents: Iterable[DocumentRow]) -> Iterator[str]:
    waiting = [each for each in documents if each.status in UNUSABLE]
    if waiting:
        yield "documents"
    for each in waiting:
        of_party = f"related_parties.{each.related_party_id}." if each.related_party_id else ""
        yield f"{of_party}documents.{each.type}"


def _of_business(form: BusinessForm, parties: Parties) -> Iterator[str]:
    if form.address and form.address.country == "US":
        yield "EIN_CONFIRMATION"
    yield from _BY_ENTITY.get(form.entity_type or "", ())
    risk = form.risk_info or None
    if risk and risk.source_of_funds == "CLIENT_OR_EXTERNAL_FUNDS":
        yield from ("FLOW_OF_FUNDS", "BSA_AML_OFAC_POLICIES")
    if risk and "CRYPTOCURRENCY" in (risk.risk_categories or ()):
        yield from _CRYPTOCURRENCY
    if any(share_of(each) >= OWNER_SHARE for each in parties.values()):
        yield "ORG_CHART"


def _of_individual(form: IndividualForm) -> tuple[str, ...]:
    return _identity_documents(form.identification_type)


def _identity_documents(kind: str) -> tuple[str, ...]:
    """Return the documents that prove a number of this type; an SSN needs none, the identity check covers it."""
    if kind == "SSN":
        return ()
    return ("PASSPORT",) if kind == "PASSPORT" else ("ID_FRONT", "ID_BACK")
