"""Forms of businesses, related parties and individuals, as they are sent and stored.

Types define the range of single fields; `rules/fields.py` has the other checks.
"""

from datetime import date, datetime
from typing import Annotated, Final, Literal
from uuid import UUID

import msgspec
from msgspec import UNSET, UnsetType

from billfold.accounts.addresses import Address, Country
from billfold.accounts.customers.schemas import Email, Name, Phone
from billfold.onboarding.applications.types import Role

Text = Annotated[str, msgspec.Meta(min_length=1, max_length=250, pattern=r"\S")]
LongText = Annotated[str, msgspec.Meta(min_length=1, max_length=2000, pattern=r"\S")]
Number = Annotated[str, msgspec.Meta(min_length=1, max_length=50, pattern=r"\S")]
AgreementVersion = Annotated[str, msgspec.Meta(min_length=1, max_length=50, pattern=r"\S")]
Occupation = Annotated[str, msgspec.Meta(min_length=2, max_length=200, pattern=r"\S")]
Share = Annotated[
    str,
    msgspec.Meta(pattern=r"^(0(\.[0-9]{1,6})?|1(\.0{1,6})?)\Z", description='a share from "0" to "1" such as "0.51"'),
]

INDUSTRIES: Final = frozenset(
    [
        "ACCOUNTING_AND_BOOKKEEPING",
        "ADVERTISING",
        "ART",
        "ATM_OPERATOR",
        "BEAUTY_AND_COSMETIC_SERVICES",
        "BIOTECH",
        "BUSINESS_MANAGEMENT",
        "CLEANING_SERVICES",
        "CONSTRUCTION",
        "CONSULTING",
        "CRYPTOCURRENCY",
        "DESIGN",
        "ECOMMERCE",
        "EDUCATION",
        "ENERGY",
        "ENTERTAINMENT",
        "FINANCIAL_SERVICES",
        "FITNESS",
        "FOOD",
        "GAMBLING",
        "HARDWARE",
        "HEALTHCARE",
        "HOSPITALITY",
        "INSURANCE",
        "INVESTMENTS",
        "LEGAL_SERVICES",
        "MARKETING",
        "MARKETPLACE",
        "NONPROFIT",
        "OTHER",
        "PARKING_GARAGE",
        "PROFESSIONAL_TECHNICAL_OR_MECHANICAL_SERVICES",
        "REAL_ESTATE",
        "RECRUITING",
        "RESEARCH",
        "RESTAURANT",
        "RETAIL_STORES",
        "SECURITY",
        "SHIPPING_WAREHOUSING",
        "SOFTWARE",
        "SPORTS_TEAM",
        "SUPPORT_SERVICES",
        "TECHNOLOGY",
        "TRANSPORTATION",
        "TRAVEL",
        "WHOLESALE",
        "VENDING_MACHINE_OPERATOR",
        "WASTE_MANAGEMENT",
    ]
)
Industry = Annotated[str, msgspec.Meta(extra_json_schema={"enum": sorted(INDUSTRIES)})]
EntityType = Literal[
    "SOLE_PROPRIETOR", "CORPORATE", "LLC", "PARTNERSHIP", "INCORPORATED_ASSOCIATION", "UNINCORPORATED_ASSOCIATION"
]
RiskCategory = Literal["INTERNET_GAMBLING", "CANNABIS", "CRYPTOCURRENCY", "CROWDFUNDING", "FINANCIAL_OR_MONEY_MOVEMENT"]
PersonNumberType = Literal["SSN", "PASSPORT", "NON_US_ID"]
IndividualNumberType = Literal["SSN", "PASSPORT", "TIN", "DRIVERS_LICENSE", "INTERNATIONAL_ID"]
PARTIES_MAX: Final = 50


class BusinessNumber(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """An identification number of a business."""

    identification_number: Number
    type: Literal["TIN", "EIN", "NON_US_BUSINESS_ID"]
    issuing_country: Country | None = None


class PersonNumber(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """An identification number of a person."""

    identification_number: Number
    identification_type: PersonNumberType
    identification_number_issuing_country: Country | None = None


class Contact(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The contact person. A change replaces the fields that it names."""

    name: Name | UnsetType | None = UNSET
    phone_number: Phone | UnsetType | None = UNSET
    email: Email | UnsetType | None = UNSET


class RiskInfo(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The business's activity and source of funds. A change replaces the fields that it names."""

    risk_categories: Annotated[list[RiskCategory], msgspec.Meta(max_length=20)] | UnsetType | None = UNSET
    company_mission: LongText | UnsetType | None = UNSET
    primary_regulator: Text | UnsetType | None = UNSET
    has_current_enforcement_actions: bool | UnsetType | None = UNSET
    business_activity_location: (
        Literal["PRIMARILY_US", "MIX_OF_US_AND_NON_US", "PRIMARILY_NON_US"] | UnsetType | None
    ) = UNSET
    source_of_funds: Literal["INTERNAL_FUNDS", "CLIENT_OR_EXTERNAL_FUNDS"] | UnsetType | None = UNSET
    account_usage: Literal["MONEY_STORAGE"] | UnsetType | None = UNSET
    annual_revenue: Literal["PRE_REVENUE", "5M_OR_LESS", "BETWEEN_5M_100M", "100M_OR_MORE"] | UnsetType | None = UNSET
    monthly_transactions: Literal["5_OR_LESS", "BETWEEN_5_AND_15", "15_OR_MORE"] | UnsetType | None = UNSET
    first_month_deposit: (
        Literal["1M_OR_LESS", "BETWEEN_1M_AND_5M", "BETWEEN_5M_AND_20M", "BETWEEN_20M_AND_50M", "50M_OR_MORE"]
        | UnsetType
        | None
    ) = UNSET


class IndustryInfo(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """The industry; `other_industry` describes it, if it is OTHER."""

    industry: Industry
    other_industry: Text | None = None


class AgreementConsent(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The accepted version of the agreements, and when it was accepted."""

    version: AgreementVersion
    timestamp: datetime


class FirstPocket(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """The Pocket to open on approval, with the fields of a new Pocket."""

    pocket_name: Annotated[str, msgspec.Meta(min_length=1, max_length=128, pattern=r"\S")]
    deposit_strategy_id: str | None = None
    reinvestment_strategy_id: str | UnsetType | None = UNSET
    trading_strategy_id: str | None = None
    pocket_configuration_id: str | None = None


class BusinessForm(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The fields of a business application. Each may be omitted, and null removes it; `apply` requires most of them."""

    name: Text | UnsetType | None = UNSET
    doing_business_as: Text | UnsetType | None = UNSET
    website: Text | UnsetType | None = UNSET
    entity_type: EntityType | UnsetType | None = UNSET
    identification_number: BusinessNumber | UnsetType | None = UNSET
    identification_number_issuing_country: Country | UnsetType | None = UNSET
    address: Address | UnsetType | None = UNSET
    contact: Contact | UnsetType | None = UNSET
    formation_date: date | UnsetType | None = UNSET
    risk_info: RiskInfo | UnsetType | None = UNSET
    industry: IndustryInfo | UnsetType | None = UNSET
    agreement_consent: AgreementConsent | UnsetType | None = UNSET
    first_pocket: FirstPocket | UnsetType | None = UNSET


class CreateBusinessApplication(BusinessForm, kw_only=True):
    """The same, with an `id` chosen by the caller."""

    id: UUID | None = None


class RelatedPartyForm(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A person who owns, controls or represents the business. Each field may be omitted, and null removes it."""

    title: Text | UnsetType | None = UNSET
    name: Name | UnsetType | None = UNSET
    email: Email | UnsetType | None = UNSET
    phone_number: Phone | UnsetType | None = UNSET
    citizenship: Country | UnsetType | None = UNSET
    address: Address | UnsetType | None = UNSET
    date_of_birth: date | UnsetType | None = UNSET
    identification_number: PersonNumber | UnsetType | None = UNSET
    roles: Annotated[list[Role], msgspec.Meta(max_length=10)] | UnsetType | None = UNSET
    ownership_percentage: Share | UnsetType | None = UNSET


class _Profile(
    msgspec.Struct, forbid_unknown_fields=True, kw_only=True, omit_defaults=True, tag_field="employment_status"
):
    income: Literal["BELOW_50K", "BETWEEN_50K_AND_100K", "BETWEEN_100K_AND_250K", "OVER_250K"]
    net_worth: Literal["BELOW_50K", "BETWEEN_50K_AND_200K", "BETWEEN_200K_AND_1M", "BETWEEN_1M_AND_5M", "OVER_5M"]
    bd_association: Text | None = None
    director_policy_maker_of_company: Text | None = None


class EmployedProfile(_Profile, kw_only=True, tag="EMPLOYED"):
    """An employed person."""

    occupation: Occupation


class IndependentProfile(_Profile, kw_only=True, tag="INDEPENDENT"):
    """A self-employed person."""

    occupation: Occupation | None = None


class RetiredProfile(_Profile, kw_only=True, tag="RETIRED"):
    """A retired person."""

    occupation: Occupation | None = None


class StudentProfile(_Profile, kw_only=True, tag="STUDENT"):
    """A student."""

    occupation: Occupation | None = None


class UnemployedProfile(_Profile, kw_only=True, tag="UNEMPLOYED"):
    """An unemployed person."""

    occupation: Occupation | None = None


InvestmentProfile = EmployedProfile | IndependentProfile | RetiredProfile | StudentProfile | UnemployedProfile


class IndividualForm(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """The fields of an application of a person."""

    name: Name
    email: Email
    phone_number: Phone
    date_of_birth: date
    address: Address
    identification_number: Number
    identification_type: IndividualNumberType = "SSN"
    identification_number_issuing_country: Country | None = None
    citizenship_country: Country = "US"
    originally_onboarded_at: datetime | None = None
    investment_profile: InvestmentProfile
    agreement_consent: AgreementConsent
    first_pocket: FirstPocket | None = None


class NewIndividualForm(IndividualForm, kw_only=True):
    """The same, with an `id` chosen by the caller."""

    id: UUID | None = None


AnyForm = BusinessForm | IndividualForm
