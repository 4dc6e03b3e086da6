"""The fields of an application in the words of a person, and their forms as bodies of the API."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import date
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from typing import Any, Final, NamedTuple

from msgspec import inspect

from billfold.accounts.addresses import COUNTRIES
from billfold.onboarding.applications.content import Content
from billfold.onboarding.applications.forms import INDUSTRIES, BusinessForm, RelatedPartyForm
from billfold.onboarding.applications.schemas import mask_number
from billfold.platform.dates import format_day
from billfold.platform.errors import FieldError
from billfold.web.forms import type_at


class Kind(StrEnum):
    """The input type of a field."""

    TEXT = "text"
    LONG_TEXT = "long"
    EMAIL = "email"
    PHONE = "tel"
    DATE = "date"
    SELECT = "select"
    COUNTRY = "country"
    MANY = "many"
    YES_NO = "yes-no"
    PERCENT = "percent"
    SECRET = "secret"  # noqa: S105 - a kind: what was saved is shown masked


class Field(NamedTuple):
    """A field of a form; `path` is its place in the body of the API. `options` map values to labels."""

    path: str
    label: str
    kind: Kind = Kind.TEXT
    options: Mapping[str, str] = {}
    hint: str = ""
    autocomplete: str = "off"
    optional: bool = False
    chars_max: int = 250

    @property
    def top(self) -> str:
        """The name of the field of the body that it is, or is a part of."""
        return self.path.partition(".")[0]


class Step(NamedTuple):
    """One page of a form."""

    key: str
    title: str
    fields: tuple[Field, ...]

    def of(self, names: Iterable[str] | None) -> Step:
        """Return the step with only the requested fields; None: with all."""
        return self if names is None else self._replace(fields=tuple(each for each in self.fields if each.top in names))


_LINE_CHARS_MAX: Final = 254
_KINDS: Final[Mapping[type[inspect.Type], Kind]] = {
    inspect.BoolType: Kind.YES_NO,
    inspect.DateType: Kind.DATE,
    inspect.ListType: Kind.MANY,
    inspect.LiteralType: Kind.SELECT,
}
NO_CATEGORY: Final = "NONE"
"""The checkbox for "none of these"."""
_COUNTRIES: Final = {each: each for each in ("US", *sorted(COUNTRIES - {"US"}))}


def _country(path: str, label: str, *, autocomplete: str = "off", optional: bool = False) -> Field:
    return Field(path, label, Kind.COUNTRY, _COUNTRIES, autocomplete=autocomplete, optional=optional)


def _step(form: type, key: str, title: str, *fields: Field) -> Step:
    """Return a page with fields of a form, each of the kind and length that the struct says."""
    return Step(key, title, tuple(_declared(each, type_at(form, each.path)) for each in fields))


def _declared(field: Field, declared: inspect.Type) -> Field:
    longest = declared.max_length if isinstance(declared, inspect.StrType) else None
    kind = _KINDS.get(type(declared), field.kind)
    if longest is not None and longest > _LINE_CHARS_MAX:
        kind = Kind.LONG_TEXT
    return field._replace(kind=kind, chars_max=longest or field.chars_max)


def _words(name: str) -> str:
    return name.replace("_", " ").capitalize().replace("Atm ", "ATM ")


def _address(at: str) -> tuple[Field, ...]:
    return (
        Field(f"{at}.street_address", "Street and number", autocomplete="address-line1"),
        Field(f"{at}.street_address2", "Apartment, suite, floor", autocomplete="address-line2", optional=True),
        Field(f"{at}.city", "City", autocomplete="address-level2"),
        Field(
            f"{at}.state",
            "State or region",
            hint="In the US two letters, such as NY.",
            autocomplete="address-level1",
            optional=True,
        ),
        Field(f"{at}.postal_code", "Postal code", autocomplete="postal-code"),
        _country(f"{at}.country", "Country", autocomplete="country"),
    )


_ENTITIES: Final = {
    "SOLE_PROPRIETOR": "Sole proprietor",
    "CORPORATE": "Corporation",
    "LLC": "LLC",
    "PARTNERSHIP": "Partnership",
    "INCORPORATED_ASSOCIATION": "Incorporated association",
    "UNINCORPORATED_ASSOCIATION": "Unincorporated association",
}
_BUSINESS_NUMBERS: Final = {"EIN": "EIN", "TIN": "TIN", "NON_US_BUSINESS_ID": "Number of another country"}
_CATEGORIES: Final = {
    "INTERNET_GAMBLING": "Internet gambling",
    "CANNABIS": "Cannabis",
    "CRYPTOCURRENCY": "Cryptocurrency",
    "CROWDFUNDING": "Crowdfunding",
    "FINANCIAL_OR_MONEY_MOVEMENT": "Financial services or moving money for others",
    NO_CATEGORY: "None of these",
}
_LOCATIONS: Final = {
    "PRIMARILY_US": "Mostly in the US",
    "MIX_OF_US_AND_NON_US": "In the US and elsewhere",
    "PRIMARILY_NON_US": "Mostly outside the US",
}
_FUNDS: Final = {"INTERNAL_FUNDS": "Our own", "CLIENT_OR_EXTERNAL_FUNDS": "Money of clients or others"}
_REVENUES: Final = {
    "PRE_REVENUE": "None yet",
    "5M_OR_LESS": "Up to $5 million",
    "BETWEEN_5M_100M": "$5 to $100 million",
    "100M_OR_MORE": "$100 million or more",
}
_TRANSACTIONS: Final = {"5_OR_LESS": "Up to 5", "BETWEEN_5_AND_15": "5 to 15", "15_OR_MORE": "15 or more"}
_DEPOSITS: Final = {
    "1M_OR_LESS": "Up to $1 million",
    "BETWEEN_1M_AND_5M": "$1 to $5 million",
    "BETWEEN_5M_AND_20M": "$5 to $20 million",
    "BETWEEN_20M_AND_50M": "$20 to $50 million",
    "50M_OR_MORE": "$50 million or more",
}
_PERSON_NUMBERS: Final = {"SSN": "Social Security number", "PASSPORT": "Passport", "NON_US_ID": "ID of another country"}
_ROLES: Final = {
    "CONTROL_PERSON": "Controls the business, as its chief executive does",
    "AUTHORIZED_REPRESENTATIVE": "May act for the business",
    "BENEFICIAL_OWNER": "Owns 25 % or more of it",
}

BUSINESS_STEPS: Final = (
    _step(
        BusinessForm,
        "business",
        "The business",
        Field("name", "Legal name", autocomplete="organization"),
        Field("doing_business_as", "Trading name", optional=True),
        Field("website", "Website", autocomplete="url", optional=True),
        Field("entity_type", "Type of business", options=_ENTITIES),
        Field("formation_date", "Formed on"),
        Field("identification_number.type", "Type of tax number", options=_BUSINESS_NUMBERS),
        Field("identification_number.identification_number", "Tax number", Kind.SECRET),
        _country("identification_number.issuing_country", "Issued by", optional=True),
        Field("industry.industry", "Industry", Kind.SELECT, {each: _words(each) for each in sorted(INDUSTRIES)}),
        Field("industry.other_industry", "Which other industry", optional=True),
    ),
    _step(
        BusinessForm,
        "contact",
        "Address and contact",
        *_address("address"),
        Field("contact.name.first_name", "First name of the contact", autocomplete="given-name"),
        Field("contact.name.last_name", "Last name of the contact", autocomplete="family-name"),
        Field("contact.email", "Email of the contact", Kind.EMAIL, autocomplete="email"),
        Field("contact.phone_number", "Phone of the contact", Kind.PHONE, autocomplete="tel", chars_max=30),
    ),
    _step(
        BusinessForm,
        "activity",
        "Activity and money",
        Field("risk_info.company_mission", "What the business does", optional=True),
        Field("risk_info.risk_categories", "Does it deal with any of these?", options=_CATEGORIES),
        Field("risk_info.primary_regulator", "Regulator", optional=True),
        Field("risk_info.has_current_enforcement_actions", "Is an authority acting against it now?"),
        Field("risk_info.business_activity_location", "Where it operates", options=_LOCATIONS),
        Field("risk_info.source_of_funds", "Source of the money", options=_FUNDS),
        Field("risk_info.account_usage", "Purpose of the account", options={"MONEY_STORAGE": "Keeping money"}),
        Field("risk_info.annual_revenue", "Revenue in a year", options=_REVENUES),
        Field("risk_info.monthly_transactions", "Payments in a month", options=_TRANSACTIONS),
        Field("risk_info.first_month_deposit", "Deposit in the first month", options=_DEPOSITS),
    ),
)
PERSON_STEPS: Final = (
    _step(
        RelatedPartyForm,
        "person",
        "Person",
        Field("name.first_name", "First name", autocomplete="given-name"),
        Field("name.middle_name", "Middle name", autocomplete="additional-name", optional=True),
        Field("name.last_name", "Last name", autocomplete="family-name"),
        Field("title", "Title in the business", autocomplete="organization-title", optional=True),
        Field("date_of_birth", "Date of birth", autocomplete="bday"),
        _country("citizenship", "Citizenship", optional=True),
        Field("email", "Email", Kind.EMAIL, autocomplete="email", optional=True),
        Field("phone_number", "Phone", Kind.PHONE, autocomplete="tel", optional=True, chars_max=30),
    ),
    _step(RelatedPartyForm, "address", "Home address", *_address("address")),
    _step(
        RelatedPartyForm,
        "identification",
        "Identification",
        Field("identification_number.identification_type", "Kind of number", options=_PERSON_NUMBERS),
        Field("identification_number.identification_number", "Number", Kind.SECRET),
        _country("identification_number.identification_number_issuing_country", "Issued by", optional=True),
    ),
    _step(
        RelatedPartyForm,
        "role",
        "Role and share",
        Field("roles", "The person", options=_ROLES),
        Field("ownership_percentage", "Share of the business in percent", Kind.PERCENT, optional=True, chars_max=9),
    ),
)


MERGED: Final = frozenset({"contact", "risk_info"})
"""In these objects a change replaces individual fields; other objects are replaced as a whole."""
_PHONE_MARKS: Final = str.maketrans("", "", " ()-./\u00a0\u2011")
_STATE_LETTERS: Final = 2


def content_in(fields: Iterable[Field], form: Mapping[str, str], stored: Content) -> Content:
    """Return the values of a form of these fields, as a body of the API; null for empty ones.

    A number that is left empty stays as it is stored.
    """
    tree: dict[str, Any] = {}
    for each in fields:
        *way, name = each.path.split(".")
        place = tree
        for part in way:
            place = place.setdefault(part, {})
        place[name] = _value_in(each, form)
    number = tree.get("identification_number")
    known = stored.get("identification_number")
    if number and known and number.get("identification_number") is None and any(number.values()):
        number["identification_number"] = known["identification_number"]
    return {name: _pruned(value, is_merged=name in MERGED) for name, value in tree.items()}


def typed_in(fields: Iterable[Field], form: Mapping[str, str]) -> dict[str, str]:
    """Return the fields of a form as they were typed, without numbers."""
    names = {name for each in fields if each.kind != Kind.SECRET for name in names_of(each)}
    return {name: value for name, value in form.items() if name in names}


def values_of(fields: Iterable[Field], content: Content) -> dict[str, str]:
    """Return the values of a form's fields from stored data; numbers are left empty."""
    found: dict[str, str] = {}
    for each in fields:
        value = value_at(content, each.path)
        if value is None or each.kind == Kind.SECRET:
            continue
        if each.kind == Kind.MANY:
            found |= {f"{each.path}.{option}": "yes" for option in (value or [NO_CATEGORY])}
        elif each.kind == Kind.YES_NO:
            found[each.path] = "yes" if value else "no"
        else:
            found[each.path] = _percent(value) if each.kind == Kind.PERCENT else str(value)
    return found


def shown_of(fields: Iterable[Field], content: Content) -> dict[str, str]:
    """Return stored data in words, by label; numbers are masked, and empty fields left out."""
    return {each.label: text for each in fields if (text := shown_at(each, content))}


_WORDS: Final[Mapping[Kind, Callable[[Any], str]]] = {
    Kind.DATE: lambda value: format_day(date.fromisoformat(str(value))),
    Kind.PERCENT: lambda value: f"{_percent(value)} %",
    Kind.YES_NO: lambda value: "Yes" if value else "No",
}


def shown_at(field: Field, content: Content) -> str:
    """Return the stored value of a field in words, a number masked."""
    value = value_at(content, field.path)
    if value is None:
        return ""
    if field.kind == Kind.SECRET:
        return mask_number(value)
    if field.kind == Kind.MANY:
        return "; ".join(field.options.get(each, each) for each in (value or [NO_CATEGORY]))
    words = _WORDS.get(field.kind)
    return words(value) if words else field.options.get(value, str(value))


def value_at(content: Content, path: str) -> Any:  # noqa: ANN401 - any value of a body
    """Return the value at a path of a body, or None."""
    value: Any = content
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value


def drop(content: Content, loc: tuple[str | int, ...]) -> str | None:
    """Remove an invalid value from a body; return its path, None if it is not there. `loc` begins with `body`."""
    top, *more = [str(each) for each in loc[1:]] or [""]
    inner = content.get(top)
    if top in MERGED and more and isinstance(inner, dict) and more[0] in inner:
        del inner[more[0]]
        return f"{top}.{more[0]}"
    return top if content.pop(top, _NOTHING) is not _NOTHING else None


def field_of(fields: Iterable[Field], error: FieldError) -> Field | None:
    """Return the field at which an error is shown."""
    path = ".".join(str(each) for each in error.loc[1:] if isinstance(each, str))
    places = [each for each in fields if _covers(each.path, path)]
    return next((each for each in places if each.path == path), places[0] if places else None)


_NOTHING: Final = object()


def _covers(path: str, other: str) -> bool:
    return path == other or path.startswith(f"{other}.") or other.startswith(f"{path}.")


def names_of(field: Field) -> list[str]:
    """Return the names of a field in a form: a list has one for each of its options."""
    return [f"{field.path}.{each}" for each in field.options] if field.kind == Kind.MANY else [field.path]


def _value_in(field: Field, form: Mapping[str, str]) -> Any:  # noqa: ANN401 - any value of a body
    if field.kind == Kind.MANY:
        chosen = [each for each in field.options if form.get(f"{field.path}.{each}")]
        return None if not chosen else [each for each in chosen if each != NO_CATEGORY]
    text = form.get(field.path, "").strip()
    read = _READ.get(field.kind, _upper_state if field.path.endswith(".state") else str)
    return read(text) if text else None


def _upper_state(text: str) -> str:
    return text.upper() if len(text) == _STATE_LETTERS else text


def _share(percent: str) -> str:
    """Return a percentage as a share: `51` is `0.51`. Other texts are unchanged, for the API to refuse."""
    try:
        share = Decimal(percent.removesuffix("%").strip().replace(",", ".")) / 100
    except InvalidOperation:
        return percent
    if not share.is_finite() or share < 0 or len(percent) > 20:  # noqa: PLR2004 - more than any share has
        return percent
    text = f"{share:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


_READ: Final[Mapping[Kind, Callable[[str], Any]]] = {
    Kind.YES_NO: lambda text: text == "yes",
    Kind.PHONE: lambda text: text.translate(_PHONE_MARKS),
    Kind.PERCENT: _share,
}
"""Conversions of form text before it is sent to the API."""


def _percent(share: str) -> str:
    text = f"{Decimal(share) * 100:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _pruned(value: Any, *, is_merged: bool = False) -> Any:  # noqa: ANN401 - any value of a body
    """Return a part of a body without empty values; None if nothing remains."""
    if not isinstance(value, dict):
        return value
    pruned = {name: _pruned(each) for name, each in value.items()}
    if is_merged:
        return pruned
    return {name: each for name, each in pruned.items() if each is not None} or None
