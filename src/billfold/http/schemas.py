"""Shapes that several parts share, and what is wrong with a body, field by field, in words a person can act on.

The decoder stops at the first error and gives no location in unions. Here the body is held against its
declared type once more: every mistake gets its place and says what would be right.
"""

import re
import typing
from collections.abc import Iterable, Iterator, Mapping
from datetime import date, datetime
from decimal import Decimal
from functools import cache
from typing import Annotated, Any, Generic, Literal, TypeVar
from uuid import UUID

import msgspec
from msgspec import UNSET, UnsetType, inspect

from billfold.platform.dates import DAY_RANGE, is_in_range
from billfold.platform.errors import FieldError
from billfold.platform.money import format_usd

Item = TypeVar("Item")
NOT_BLANK = r"[^\s\u00ad\u115f\u1160\u200b-\u200f\u2060-\u206f\u2800\u3164\ufeff\uffa0]"
"""The pattern of a text that is not blank: it has a visible character."""
_MICROS = 1_000_000


def one_of(*known: str) -> msgspec.Meta:
    """Declare the possible values of a text in an answer: `Annotated[str, one_of("OPEN", "CLOSED")]`."""
    return msgspec.Meta(extra_json_schema={"enum": list(known)})


def published_pattern(pattern: str) -> str:
    r"""Return a declared pattern in the syntax of JSON Schema (ECMA-262): its `$` is the end, like `\Z` in Python."""
    return pattern.replace(r"\Z", "$")


BankTime = Annotated[datetime, msgspec.Meta(description="On the bank's clock, which a sandbox can set.")]
WallTime = Annotated[datetime, msgspec.Meta(description="On the wall clock, also where the bank's is set otherwise.")]


class Amount(msgspec.Struct, kw_only=True):
    """Cents of a currency, and the formatted text."""

    value: int
    currency: Literal["USD"] = "USD"
    formatted: str = ""


def usd(cents: int) -> Amount:
    """An Amount of US dollars."""
    return Amount(value=cents, formatted=format_usd(cents))


def format_price(micros: int) -> str:
    """A price per $100 with six decimals: "98.612361"."""
    return f"{micros // _MICROS}.{micros % _MICROS:06d}"


def format_appreciation(cents_per_second: Decimal) -> str:
    """Cents per second with twelve decimals, never with an exponent: "0.033999678870"."""
    return f"{cents_per_second:.12f}"


class CursorList(msgspec.Struct, Generic[Item], kw_only=True):
    """A page of a list and cursors to the adjacent pages."""

    prev_page: str | None
    next_page: str | None
    items: list[Item]
    object_type: Literal["CursorList"] = "CursorList"


class SearchedList(CursorList[Item], Generic[Item], kw_only=True):
    """A page of a list that is searched by filters, up to a number of rows per page.

    If that limit ends the search early, `searched_to` is the booking time of the last row searched: the page has fewer
    rows than its limit, or none, and its cursor continues from there. A list without a cursor is complete.
    """

    searched_to: datetime | UnsetType = UNSET


class OffsetList(msgspec.Struct, Generic[Item], kw_only=True):
    """A list that is short enough to be counted."""

    offset: int
    count: int
    items: list[Item]
    object_type: Literal["List"] = "List"


class CheckedBody(msgspec.Struct):
    """A body with rules for its fields that types cannot express."""

    @classmethod
    def field_errors(cls, fields: Mapping[str, Any]) -> Iterator[FieldError]:
        """Yield the errors of `fields`, by name: only fields with valid types are included.

        A field with the wrong type is not among them; its error is reported already.
        """
        raise NotImplementedError


Place = tuple[str | int, ...]
Json = Any
"""A JSON value."""
_NOUNS: Mapping[type[inspect.Type], str] = {
    inspect.BoolType: "true or false",
    inspect.IntType: "a whole number",
    inspect.FloatType: "a number",
    inspect.StrType: "a text",
    inspect.LiteralType: "a text",
    inspect.EnumType: "a text",
    inspect.DateTimeType: "a date-time",
    inspect.DateType: "a date",
    inspect.UUIDType: "a UUID",
    inspect.ListType: "a list",
    inspect.DictType: "an object",
    inspect.StructType: "an object",
    inspect.NoneType: "null",
}
"""In the order in which alternatives are named."""
_FOUND: Mapping[type, str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number with a point or an exponent",
    str: "a text",
    list: "a list",
    dict: "an object",
    type(None): "null",
}
_TEXT_KINDS = (inspect.StrType, inspect.LiteralType, inspect.EnumType)
_FORMATS: Mapping[type[inspect.Type], tuple[type, str, str]] = {
    inspect.UUIDType: (UUID, "must be a UUID of 36 characters", "uuid_parsing"),
    inspect.DateTimeType: (
        datetime,
        "must be a date-time with its offset, like 2025-06-02T09:00:00-04:00",
        "date_parsing",
    ),
    inspect.DateType: (date, "must be a date, like 2025-06-02", "date_parsing"),
}
_OUT_OF_RANGE = "out_of_range"
_BOUNDS = (("ge", "at least"), ("gt", "more than"), ("le", "at most"), ("lt", "less than"))


def mistakes_in(body: Any, declared: Any) -> list[FieldError]:  # noqa: ANN401 - whatever the operation declares
    """Return every error of a body that was refused; of a list those of one item."""
    unknown = FieldError(("body",), "does not have the expected form", "value_error")
    return _mistakes(inspect.type_info(declared), body, ("body",)) or [unknown]


def days_out_of_range(body: Any, declared: Any) -> list[FieldError]:  # noqa: ANN401 - as above
    """Return the dates out of range in a body of its declared type, for a list those of one item."""
    found = _mistakes(inspect.type_info(declared), body, ("body",))
    return [each for each in found if each.type == _OUT_OF_RANGE]


def field_errors(decoded: CheckedBody) -> Iterator[FieldError]:
    """Yield the errors of a body's fields although each has its declared type."""
    yield from type(decoded).field_errors({name: getattr(decoded, name) for name in decoded.__struct_fields__})


@cache
def has_dates(declared: Any) -> bool:  # noqa: ANN401 - as above
    """Tell whether a body of a type may hold a date. A recursive type is searched once."""
    pending, seen = [inspect.type_info(declared)], set[int]()
    while pending:
        each = pending.pop()
        if isinstance(each, inspect.DateTimeType | inspect.DateType):
            return True
        if id(each) not in seen:
            seen.add(id(each))
            fields = each.fields if isinstance(each, inspect.StructType) else ()
            parts = [getattr(each, name, None) for name in ("type", "item_type", "key_type", "value_type")]
            pending += [*(field.type for field in fields), *getattr(each, "types", ()), *filter(None, parts)]
    return False


def _mistakes(info: inspect.Type, value: object, place: Place) -> list[FieldError]:
    """Return the errors of a value that should be of a type."""
    kinds = list(_alternatives(info))
    fitting = [(kind, described) for kind, described in kinds if _fits(kind, value)]
    if not fitting:
        return [FieldError(place, _of_another_type([kind for kind, _ in kinds], value), "type_error")]
    structs = [kind for kind, _ in fitting if isinstance(kind, inspect.StructType)]
    if structs and isinstance(value, dict):
        return _object_mistakes(structs, value, place)
    found = [_value_mistakes(kind, described, value, place=place) for kind, described in fitting]
    return min(found, key=len)


def _alternatives(info: inspect.Type, description: str | None = None) -> Iterator[tuple[inspect.Type, str | None]]:
    """Yield the alternatives of a value, each with the description of its form."""
    if isinstance(info, inspect.Metadata):
        described = (info.extra_json_schema or {}).get("description", description)
        yield from _alternatives(info.type, described)
    elif isinstance(info, inspect.UnionType):
        for each in info.types:
            yield from _alternatives(each, description)
    else:
        yield info, description


def _fits(kind: inspect.Type, value: object) -> bool:
    """Tell whether a value has the JSON type of a type, regardless of its limits."""
    if isinstance(kind, inspect.AnyType):
        return True
    if isinstance(kind, inspect.FloatType):
        return isinstance(value, int | float) and not isinstance(value, bool)
    text = isinstance(kind, _TEXT_KINDS) or type(kind) in _FORMATS
    return (_FOUND.get(type(value)) == _NOUNS.get(type(kind))) or (text and isinstance(value, str))


def _of_another_type(kinds: list[inspect.Type], value: object) -> str:
    named = {_NOUNS.get(type(each), "") for each in kinds}
    wanted = " or ".join(each for each in dict.fromkeys(_NOUNS.values()) if each in named)
    return f"must be {wanted}, not {_FOUND[type(value)]}"


def _object_mistakes(structs: list[inspect.StructType], value: dict[str, Any], place: Place) -> list[FieldError]:
    tag_field = structs[0].tag_field
    if tag_field is not None and tag_field not in value:
        return [FieldError((*place, tag_field), "is required", "missing")]
    if tag_field is not None:
        tag, tags = value[tag_field], [str(each.tag) for each in structs]
        if not isinstance(tag, str):
            wrong = _of_another_type([inspect.StrType()], tag)
            return [FieldError((*place, tag_field), wrong, "type_error")]
        if tag not in tags:
            known = f"must be one of {', '.join(tags)}"
            return [FieldError((*place, tag_field), known, "value_error")]
        structs = [each for each in structs if each.tag == tag]
    return _struct_mistakes(structs[0], value, place)


def _struct_mistakes(struct: inspect.StructType, value: dict[str, Any], place: Place) -> list[FieldError]:
    fields = {each.encode_name: each for each in struct.fields}
    found = [
        FieldError((*place, name), "is required", "missing")
        for name, each in fields.items()
        if each.required and name not in value
    ]
    for name, each in value.items():
        if name in fields:
            found += _mistakes(fields[name].type, each, (*place, name))
        elif struct.forbid_unknown_fields and name != struct.tag_field:
            what = "body" if len(place) == 1 else "object"
            found.append(FieldError((*place, name), f"is not a field of this {what}", "extra_forbidden"))
    if len(place) == 1 and issubclass(struct.cls, CheckedBody):
        known = {each.loc for each in found}
        good = _good_fields(struct, value, {each.loc[1] for each in found})
        found += [each for each in struct.cls.field_errors(good) if each.loc not in known]
    if not found and hasattr(struct.cls, "__post_init__") and (wrong := _refusal(struct.cls, value)):
        return [FieldError(place, wrong, "value_error")]
    return found


def _refusal(struct: type[msgspec.Struct], value: dict[str, Any]) -> str | None:
    """Return why a struct rejects values that all have their declared types."""
    try:
        msgspec.convert(value, struct)
    except msgspec.ValidationError as error:
        return str(error).partition(" - at ")[0]
    return None


def _good_fields(struct: inspect.StructType, value: dict[str, Any], wrong: set[str | int]) -> dict[str, Any]:
    """Return the fields that have their types, by name; missing ones have their defaults."""
    hints = typing.get_type_hints(struct.cls, include_extras=True)
    return {
        each.name: msgspec.convert(value[each.encode_name], hints[each.name])
        if each.encode_name in value
        else each.default
        for each in struct.fields
        if each.encode_name not in wrong and (each.encode_name in value or each.default is not msgspec.NODEFAULT)
    }


def _value_mistakes(kind: inspect.Type, described: str | None, value: Json, place: Place) -> list[FieldError]:
    if isinstance(kind, inspect.ListType):
        return _inner_mistakes(kind, kind.item_type, enumerate(value), place=place)
    if isinstance(kind, inspect.DictType):
        names = _inner_mistakes(kind, kind.key_type, (("...", key) for key in value), place=place)
        return names or _inner_mistakes(kind, kind.value_type, (("...", value[key]) for key in value), place=place)
    if type(kind) in _FORMATS:
        return _format_mistakes(kind, value, place)
    broken = _limit_broken(kind, described, value)
    return [] if broken is None else [FieldError(place, broken, "value_error")]


def _format_mistakes(kind: inspect.Type, value: Json, place: Place) -> list[FieldError]:
    python, msg, code = _FORMATS[type(kind)]
    try:
        read: object = msgspec.convert(value, python)
    except msgspec.ValidationError:
        return [FieldError(place, msg, code)]
    if isinstance(read, date) and not is_in_range(read):
        return [FieldError(place, f"must be a day {DAY_RANGE}", _OUT_OF_RANGE)]
    return []


def _inner_mistakes(
    kind: inspect.ListType | inspect.DictType,
    inner: inspect.Type,
    values: Iterable[tuple[str | int, Json]],
    place: Place,
) -> list[FieldError]:
    values = list(values)
    if (msg := _length_broken(kind, len(values), "item")) is not None:
        return [FieldError(place, msg, "value_error")]
    for step, each in values:
        if found := _mistakes(inner, each, (*place, step)):
            # One item is enough, and in it the error that the decoder meets first.
            return [next((one for one in found if one.type != "missing"), found[0])]
    return []


def _limit_broken(kind: inspect.Type, described: str | None, value: Json) -> str | None:
    """Return the limits that a value of the right type violates."""
    if isinstance(kind, inspect.LiteralType | inspect.EnumType):
        values = kind.values if isinstance(kind, inspect.LiteralType) else tuple(kind.cls)
        known = [str(each) for each in values]
        return None if value in known else f"must be one of {', '.join(known)}"
    if isinstance(kind, inspect.IntType | inspect.FloatType):
        return _bound_broken(kind, value)
    if isinstance(kind, inspect.StrType):
        return _length_broken(kind, len(value), "character") or _form(kind, described, value)
    return None


def _form(kind: inspect.StrType, described: str | None, text: str) -> str | None:
    if kind.pattern is None or re.search(kind.pattern, text):
        return None
    if kind.pattern == NOT_BLANK:
        return "may not be blank"
    return f"must be {described}" if described else f"must match {published_pattern(kind.pattern)}"


def _bound_broken(kind: inspect.IntType | inspect.FloatType, value: float) -> str | None:
    broken = {
        "ge": kind.ge is not None and value < kind.ge,
        "gt": kind.gt is not None and value <= kind.gt,
        "le": kind.le is not None and value > kind.le,
        "lt": kind.lt is not None and value >= kind.lt,
    }
    return next((f"must be {words} {getattr(kind, name)}" for name, words in _BOUNDS if broken[name]), None)


def _length_broken(kind: inspect.StrType | inspect.ListType | inspect.DictType, length: int, what: str) -> str | None:
    for limit, words, broken in (
        (kind.min_length, "at least", length < (kind.min_length or 0)),
        (kind.max_length, "at most", kind.max_length is not None and length > kind.max_length),
    ):
        if broken:
            return f"must have {words} {limit} {what}{'' if limit == 1 else 's'}"
    return None
