"""Forms that are declared from the body they send: names, lengths and what is required are those of its struct.

A page adds labels and hints: `form.url` in a template has the attributes of the input, and its value.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from msgspec import UNSET, inspect

from billfold.http.raw_request import convert
from billfold.platform.dates import iso_z
from billfold.platform.errors import BillfoldError, FieldError, InvalidInput

_DOLLARS = re.compile(r"\$?(\d{1,15}|\d{1,3}(,\d{3}){1,4})(\.\d{1,2})?", re.ASCII)
_LABELS = {
    "again": "password",
    "approver_ids": "people",
    "as_of": "day",
    "amount_from": "smallest amount",
    "amount_to": "largest amount",
    "business_name": "name of the company",
    "current": "current password",
    "daily_cap_usdc": "amount per business day",
    "email": "email address",
    "form.to": "payee",
    "from": "first day",
    "identifier": "account number",
    "min_amount_usdc": "smallest amount",
    "origin": "Pocket that pays",
    "post_logout_redirect_uris": "redirect addresses after signing out",
    "redirect_uris": "redirect addresses",
    "settled_from": "first day",
    "start_on": "first day",
    "settled_to": "last day",
    "subject_id": "id",
    "to": "last day",
}
"""Labels of fields that cannot be derived from their names."""


class FormField(NamedTuple):
    """A field of a body: the names of the objects that it is in, and what it may be."""

    way: tuple[str, ...]
    type: inspect.Type
    is_required: bool
    is_nullable: bool
    is_removable: bool
    """Whether null removes what is stored."""

    @property
    def chars_max(self) -> int | None:
        """The most characters of a text."""
        return self.type.max_length if isinstance(self.type, inspect.StrType) else None


class Form:
    """The fields of a body as the inputs of a form, filled in with what was sent, or is stored."""

    def __init__(self, declared: Any, given: Mapping[str, str], stored: object = None) -> None:  # noqa: ANN401 - a type
        self._fields, self._given, self._stored = fields_of(declared), given, stored

    def __contains__(self, name: str) -> bool:
        return name in self._fields

    def __getitem__(self, name: str) -> dict[str, Any]:
        field = self._fields[name]
        value = self._given.get(name, getattr(self._stored, name, None) or "")
        longest = {} if field.chars_max is None else {"maxlength": field.chars_max}
        return {"optional": not field.is_required, "value": value, **longest}


@cache
def fields_of(declared: Any) -> Mapping[str, FormField]:  # noqa: ANN401 - a type
    """Return the fields of a body, and of the objects in it, by their own names."""
    return dict(_fields_in(inspect.type_info(declared), ()))


def _fields_in(info: inspect.Type, way: tuple[str, ...], *, within: bool = True) -> list[tuple[str, FormField]]:
    found: list[tuple[str, FormField]] = []
    for struct in _alternatives(info):
        for each in struct.fields if isinstance(struct, inspect.StructType) else ():
            kinds = _alternatives(each.type)
            inner = _fields_in(each.type, (*way, each.encode_name), within=within and each.required)
            nullable = any(isinstance(kind, inspect.NoneType) for kind in kinds)
            required = within and each.required and not nullable
            found += inner or [(each.encode_name, FormField(way, kinds[0], required, nullable, each.default is UNSET))]
    return found


def _alternatives(info: inspect.Type) -> list[inspect.Type]:
    if isinstance(info, inspect.Metadata):
        return _alternatives(info.type)
    if isinstance(info, inspect.UnionType):
        return [kind for each in info.types for kind in _alternatives(each)]
    return [info]


def type_at(declared: Any, path: str) -> inspect.Type:  # noqa: ANN401 - a type
    """Return what the field at a path like `contact.email` may be."""
    info = inspect.type_info(declared)
    for part in path.split("."):
        structs = [each for each in _alternatives(info) if isinstance(each, inspect.StructType)]
        info = next(field.type for struct in structs for field in struct.fields if field.encode_name == part)
    return _alternatives(info)[0]


def body_of(declared: Any, form: Mapping[str, str], **known: object) -> dict[str, Any]:  # noqa: ANN401 - a type
    """Return the body that a form sends; `known` are fields that the page says itself, UNSET for none.

    A field that is left empty is left out, null where that removes what is stored, and empty where it must not be.
    A list is of the boxes that are ticked, named like `event.money_arrived`, or of the words of a text.
    """
    body: dict[str, Any] = {}
    for name, field in fields_of(declared).items():
        value = _value_in(field, name, form)
        if value is UNSET or {name, *field.way} & known.keys():
            continue
        place = body
        for part in field.way:
            place = place.setdefault(part, {})
        place[name] = value
    return body | {name: value for name, value in known.items() if value is not UNSET}


def read_form(declared: Any, form: Mapping[str, str], **known: object) -> Any:  # noqa: ANN401 - a type
    """Return the body that a form sends as its struct, whose rules say what an empty text is. Raises InvalidInput."""
    empty = {
        name: ""
        for name, each in fields_of(declared).items()
        if each.is_required and isinstance(each.type, inspect.StrType)
    }
    return convert(empty | body_of(declared, form, **known), declared)


def _value_in(field: FormField, name: str, form: Mapping[str, str]) -> Any:  # noqa: ANN401 - any JSON
    if isinstance(field.type, inspect.ListType):
        chosen = ticked(form, name) or form.get(name, "").replace(",", " ").split()
        return chosen if chosen or not (field.way or field.is_nullable) else UNSET
    text = form.get(name, "").strip()
    if name not in form or (not text and field.is_required):
        return UNSET
    if text or not field.is_nullable:
        return text
    return None if field.is_removable else UNSET


def ticked(form: Mapping[str, str], name: str) -> list[str]:
    """Return what is ticked of a list: of `pocket_ids` the boxes `pocket.{id}`."""
    prefix = name.removesuffix("_ids").removesuffix("s").rpartition("_")[2] + "."
    return [each.removeprefix(prefix) for each in form if each.startswith(prefix)]


def field_errors(wrong: object) -> dict[str, str]:
    """Return the first error of each field, a sentence."""
    if not isinstance(wrong, InvalidInput):
        return {}
    return {_field_of(each): f"The {_label(each)} {each.msg}." for each in reversed(wrong.errors)}


def at_fields(wrong: BillfoldError, names: Mapping[str, str]) -> BillfoldError:
    """Return the errors of a body at the fields of a form, where those have other names; others as they are."""
    if not isinstance(wrong, InvalidInput):
        return wrong
    return InvalidInput(
        FieldError(("form", names.get(field := _field_of(each), field)), each.msg, each.type) for each in wrong.errors
    )


def cents_of(name: str, text: str) -> int:
    """Return dollars like "1,250.50" as cents. Raises InvalidInput at `name`."""
    if not _DOLLARS.fullmatch(text):
        raise InvalidInput.at("query", name, msg="must be dollars like 1,250.50")
    return int(Decimal(text.replace(",", "").removeprefix("$")) * 100)


def instant_in_zone(name: str, text: str, zone: str) -> str:
    """Return the instant at which a clock in a zone shows a date and time. Raises InvalidInput at body.`name`."""
    try:
        local = datetime.fromisoformat(text)
        return iso_z((local if local.tzinfo else local.replace(tzinfo=ZoneInfo(zone))).astimezone(UTC))
    except ValueError:
        raise InvalidInput.at("body", name, msg="must be a date and a time") from None
    except OverflowError:
        raise InvalidInput.at("body", name, msg="is out of range") from None


def _field_of(error: FieldError) -> str:
    """Return the name of a field; for an entry in a list, that of the list."""
    return str(next((each for each in reversed(error.loc) if isinstance(each, str)), error.loc[-1]))


def _label(error: FieldError) -> str:
    field = _field_of(error)
    return _LABELS.get(".".join(map(str, error.loc))) or _LABELS.get(field, field.replace("_", " "))
