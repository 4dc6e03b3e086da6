"""Checks fields of applications beyond their types. Mistakes are named by their place in the form."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from types import ModuleType
from typing import Any, Final

import msgspec
from stdnum.us import ein, itin, ssn

from billfold.accounts.addresses import COUNTRIES, Address, find_address_error
from billfold.accounts.customers.schemas import to_e164
from billfold.bills.rules.strategies import STRATEGIES
from billfold.identity.users.rules import check_email, check_phone_number
from billfold.onboarding.applications import forms
from billfold.onboarding.applications.forms import INDUSTRIES, RelatedPartyForm
from billfold.onboarding.applications.types import Role
from billfold.platform.dates import et_date, require_aware
from billfold.platform.errors import FieldError, InvalidInput

ADULT_AGE: Final = 18
AGE_MAX: Final = 125
EARLIEST_FORMATION_YEAR: Final = 1600  # the year; an earlier one is a mistake or a placeholder
_CONSENT_LEEWAY: Final = timedelta(minutes=5)
_STRATEGY_FIELDS: Final = (
    "deposit_strategy_id",
    "reinvestment_strategy_id",
    "trading_strategy_id",
    "pocket_configuration_id",
)
_SSN: Final = r"(?!000|666|9)\d{3}-?(?!00)\d{2}-?(?!0000)\d{4}"
_NUMBER_FORMS: Final[Mapping[str, tuple[str, str]]] = {
    "EIN": (r"\d{2}-?\d{7}", "nine digits that are given out, like 12-3456789"),
    "SSN": (_SSN, "nine digits that are given out, like 123-45-6789"),
    "TIN": (r"\d{2}-?\d{7}|\d{3}-?\d{2}-?\d{4}", "nine digits that are given out, like 12-3456789"),
    "PASSPORT": (r"[A-Za-z0-9]{5,20}", "5 to 20 letters and digits"),
}
# The first digits of an EIN are those of an IRS office.
_GIVEN_OUT: Final[Mapping[str, Sequence[ModuleType]]] = {"EIN": (ein,), "TIN": (ein, ssn, itin)}
_OTHER_NUMBER: Final = (
    r"[A-Za-z0-9][A-Za-z0-9 ./-]{1,49}",
    "2 to 50 letters, digits, spaces, dots, slashes or hyphens",
)
_OF_THE_US: Final = frozenset({"EIN", "SSN"})
_WEBSITE: Final = re.compile(r"(https?://)?([A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?\.)+[A-Za-z]{2,63}(:\d{1,5})?(/\S*)?")
_COUNTRY_NAMES: Final = frozenset(
    {"country", "issuing_country", "identification_number_issuing_country", "citizenship", "citizenship_country"}
)
_Place = tuple[str | int, ...]


def check_form(form: forms.AnyForm | RelatedPartyForm, *, now: datetime, wall: datetime) -> None:
    """Raise InvalidInput at `body` with every error; `now` is business time, which determines ages."""
    found = [*_shared_mistakes(form), *_own_mistakes(form, today=et_date(now), latest=max(now, wall))]
    if found:
        raise InvalidInput(FieldError(("body", *each.loc), each.msg, each.type) for each in dict.fromkeys(found))


def check_ownership(parties: Iterable[RelatedPartyForm]) -> None:
    """Raise InvalidInput if the parties own more than 100 %."""
    if sum((share_of(each) for each in parties), Decimal(0)) > 1:
        raise InvalidInput.at("body", "ownership_percentage", msg="of all related parties may come to at most 1")


def share_of(party: RelatedPartyForm) -> Decimal:
    """Return the share of the business that a related party owns, 0 if not given."""
    return Decimal(party.ownership_percentage or 0)


def with_e164_numbers(content: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a form with phone numbers as E.164."""
    contact = content.get("contact")
    if contact and contact.get("phone_number"):
        content = content | {"contact": contact | {"phone_number": to_e164(contact["phone_number"])}}
    if content.get("phone_number"):
        content = content | {"phone_number": to_e164(content["phone_number"])}
    return content


def merge_content(content: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields after a change: null removes one; in `contact` and `risk_info` each field separately."""
    merged = dict(content)
    for name, value in changes.items():
        if value is None:
            merged.pop(name, None)
        elif name in {"contact", "risk_info"}:
            merged[name] = merge_content(merged.get(name, {}), value)
        else:
            merged[name] = value
    return merged


def _own_mistakes(form: forms.AnyForm | RelatedPartyForm, *, today: date, latest: datetime) -> Iterator[FieldError]:
    if isinstance(form, forms.BusinessForm):
        yield from _business_mistakes(form, today)
    elif isinstance(form, forms.IndividualForm):
        yield from _birth_mistakes(form.date_of_birth, today, is_adult=True)
        number = (form.identification_type, form.identification_number, form.identification_number_issuing_country)
        yield from _number_mistakes(*number, places=_INDIVIDUAL_PLACES)
        if form.originally_onboarded_at is not None:
            yield from _instant_mistakes(("originally_onboarded_at",), form.originally_onboarded_at, latest)
    else:
        yield from _party_mistakes(form, today)
    if not isinstance(form, RelatedPartyForm) and form.agreement_consent:
        yield from _instant_mistakes(("agreement_consent", "timestamp"), form.agreement_consent.timestamp, latest)
    if not isinstance(form, RelatedPartyForm) and form.first_pocket:
        yield from _pocket_mistakes(form.first_pocket)


_BUSINESS_PLACES: Final = (
    ("identification_number", "identification_number"),
    ("identification_number", "issuing_country"),
)
_PERSON_PLACES: Final = (
    ("identification_number", "identification_number"),
    ("identification_number", "identification_number_issuing_country"),
)
_INDIVIDUAL_PLACES: Final = (("identification_number",), ("identification_number_issuing_country",))


def _business_mistakes(form: forms.BusinessForm, today: date) -> Iterator[FieldError]:
    if form.formation_date and form.formation_date > today:
        yield _error(("formation_date",), "may not be in the future")
    if form.formation_date and form.formation_date.year < EARLIEST_FORMATION_YEAR:
        yield _error(("formation_date",), f"may not be before {EARLIEST_FORMATION_YEAR}")
    if form.website and not _WEBSITE.fullmatch(form.website):
        yield _error(("website",), "must be an address like https://acme.example")
    if form.industry and form.industry.industry not in INDUSTRIES:
        yield _error(("industry", "industry"), f"must be one of {', '.join(sorted(INDUSTRIES))}")
    number = form.identification_number
    if not number:
        return
    country = form.identification_number_issuing_country or None
    yield from _number_mistakes(
        number.type, number.identification_number, number.issuing_country, places=_BUSINESS_PLACES
    )
    if country and number.issuing_country not in {None, country}:
        yield _error(
            ("identification_number_issuing_country",), "must be identification_number.issuing_country, or left out"
        )
    elif country and number.issuing_country is None and number.type in _OF_THE_US and country != "US":
        yield _error(("identification_number_issuing_country",), f"of a number of type {number.type} is US")


def _party_mistakes(form: RelatedPartyForm, today: date) -> Iterator[FieldError]:
    roles = set(form.roles or ())
    if form.date_of_birth:
        is_adult = bool(roles & {Role.CONTROL_PERSON, Role.AUTHORIZED_REPRESENTATIVE})
        yield from _birth_mistakes(form.date_of_birth, today, is_adult=is_adult)
    if number := form.identification_number:
        yield from _number_mistakes(
            number.identification_type,
            number.identification_number,
            number.identification_number_issuing_country,
            places=_PERSON_PLACES,
        )


def _birth_mistakes(born_on: date, today: date, *, is_adult: bool) -> Iterator[FieldError]:
    age = today.year - born_on.year - ((today.month, today.day) < (born_on.month, born_on.day))
    if born_on > today:
        yield _error(("date_of_birth",), "may not be in the future")
    elif age > AGE_MAX:
        yield _error(("date_of_birth",), f"may be at most {AGE_MAX} years ago")
    elif is_adult and age < ADULT_AGE:
        yield _error(("date_of_birth",), f"must be at least {ADULT_AGE} years ago")


def _number_mistakes(
    kind: str, number: str, country: str | None, *, places: tuple[_Place, _Place]
) -> Iterator[FieldError]:
    pattern, described = _NUMBER_FORMS.get(kind, _OTHER_NUMBER)
    given_out = _GIVEN_OUT.get(kind)
    is_given_out = given_out is None or any(each.is_valid(number) for each in given_out)
    if not (re.fullmatch(pattern, number, re.ASCII) and is_given_out):
        yield _error(places[0], f"of type {kind} must be {described}")
    if kind in _OF_THE_US and country not in {None, "US"}:
        yield _error(places[1], f"of a number of type {kind} is US")


def _instant_mistakes(place: _Place, at: datetime, latest: datetime) -> Iterator[FieldError]:
    try:
        if require_aware(at) > latest + _CONSENT_LEEWAY:
            yield _error(place, "may not be in the future")
    except ValueError:
        yield _error(place, "needs an offset, such as Z or -04:00")


def _pocket_mistakes(pocket: forms.FirstPocket) -> Iterator[FieldError]:
    known = [each.id for each in STRATEGIES]
    chosen = {name: value for name in _STRATEGY_FIELDS if isinstance(value := getattr(pocket, name), str)}
    wrong = [name for name, value in chosen.items() if value not in known]
    yield from (_error(("first_pocket", name), f"must be one of {', '.join(known)}") for name in wrong)
    shared = {name: value for name, value in chosen.items() if name in _STRATEGY_FIELDS[2:]}
    if not shared and "deposit_strategy_id" not in chosen:
        yield FieldError(("first_pocket", "deposit_strategy_id"), "a strategy is needed", "missing")
    if shared and not wrong and (len({*chosen.values()}) > 1 or pocket.reinvestment_strategy_id is None):
        yield _error(("first_pocket", next(iter(shared))), "contradicts the other strategy fields")


def _shared_mistakes(form: forms.AnyForm | RelatedPartyForm) -> Iterator[FieldError]:
    """Yield the errors in texts, countries, addresses, e-mail addresses and phone numbers, wherever they occur."""
    content = msgspec.to_builtins(form)
    for place, text in _texts(content, ()):
        if not text.isprintable():
            yield _error(place, "may have printable characters only")
        elif place[-1] in _COUNTRY_NAMES and text not in COUNTRIES:
            yield _error(place, "must be a country's two letters of ISO 3166, like US")
        elif place[-1] == "email":
            yield from _refusal(place, check_email, text)
        elif place[-1] == "phone_number":
            yield from _refusal(place, check_phone_number, to_e164(text))
    if isinstance(form.address, Address) and (error := find_address_error(form.address)):
        field, reason = error
        yield _error(("address", field), reason)


def _refusal(place: _Place, check: Callable[[str], str], text: str) -> Iterator[FieldError]:
    try:
        check(text)
    except InvalidInput as wrong:
        yield _error(place, wrong.errors[0].msg)


def _texts(value: object, place: _Place) -> Iterator[tuple[_Place, str]]:
    if isinstance(value, str):
        yield place, value
    elif isinstance(value, dict):
        for name, part in value.items():
            yield from _texts(part, (*place, name))
    elif isinstance(value, list):
        for index, part in enumerate(value):
            yield from _texts(part, (*place, index))


def _error(place: _Place, msg: str) -> FieldError:
    return FieldError(place, msg, "value_error")
