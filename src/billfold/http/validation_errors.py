"""What is wrong with a body, field by field, in words a person can act on.

The decoder tells the first mistake in its own language; here it becomes a place and a sentence
that says what would be right.
"""

from __future__ import annotations

import json
import re
import typing
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from msgspec import inspect

from billfold.http.schemas.checked import CheckedBody
from billfold.http.schemas.texts import NOT_BLANK
from billfold.platform.errors import FieldError

Steps = tuple[str | int, ...]
Mistakes = list[FieldError]


_PLACE = re.compile(r" - at `(?:key in )?\$([^`]*)`$")
_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+|\.\.\.)\]")
_TYPES = re.compile(r"Expected `([^`]+)`, got `([^`]+)`")
_BOUND = re.compile(r"Expected `(?:int|float)` (>=|<=|>|<) (\S+)")
_LENGTH = re.compile(r"Expected `(\w+)` of length (>=|<=|==) (\d+)")
_NOUNS = {
    "str": "a text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
    "datetime": "a date-time",
    "date": "a date",
    "uuid": "a UUID",
}
_FOUND = {"float": "a number with a point or an exponent"}
_COMPARED = {">=": "at least", "<=": "at most", ">": "more than", "<": "less than", "==": "exactly"}
_FORMS = {
    "Invalid UUID": ("must be a UUID of 36 characters", "uuid_parsing"),
    "Invalid RFC3339 encoded datetime": (
        "must be a date-time with its offset, like 2025-06-02T09:00:00-04:00",
        "date_parsing",
    ),
    "Invalid RFC3339 encoded date": ("must be a date, like 2025-06-02", "date_parsing"),
}


def mistakes_in(body: bytes, declared: Any, first: msgspec.ValidationError) -> list[FieldError]:  # noqa: ANN401 - whatever the operation declares
    """Return every mistake of a body; in lists and in what may be several things, one by one."""
    raw = json.loads(body)
    struct = _struct_of(declared, raw)
    if struct is None or not isinstance(raw, dict):
        return [_mistake(str(first), declared)]
    return _mistakes_of(struct, raw, ()) or [_mistake(str(first), declared)]


def field_errors(decoded: CheckedBody) -> Iterator[FieldError]:
    """Yield what the fields of a body do not say right, though each has its declared type."""
    told = {name: getattr(decoded, name) for name in decoded.__struct_fields__}
    yield from type(decoded).field_errors(told)


def _mistakes_of(struct: type[msgspec.Struct], raw: dict[str, Any], place: Steps) -> Mistakes:
    """Return every mistake of an object, at `place` in the body."""
    fields = {each.encode_name: each for each in msgspec.structs.fields(struct)}
    found = [
        FieldError(("body", *place, name), "is required", "missing")
        for name, each in fields.items()
        if each.required and name not in raw
    ]
    told: dict[str, Any] = {each.name: each.default for each in fields.values() if _may_miss(each)}
    for name, value in raw.items():
        if name in fields:
            wrong, converted = _field_mistakes(value, fields[name].type, (*place, name))
            found += wrong
            if wrong:
                told.pop(fields[name].name, None)
            else:
                told[fields[name].name] = converted
        elif struct.__struct_config__.forbid_unknown_fields and name != _tag_of(struct):
            told_of = "is not a field of this " + ("object" if place else "body")
            found.append(FieldError(("body", *place, name), told_of, "extra_forbidden"))
    if not place and issubclass(struct, CheckedBody):
        known = {each.loc for each in found}
        found += [each for each in struct.field_errors(told) if each.loc not in known]
    return found


def _field_mistakes(value: Any, declared: Any, place: Steps) -> tuple[Mistakes, Any]:  # noqa: ANN401 - a type or a value of any kind
    """Return what is wrong with a value, and the value as declared when nothing is."""
    try:
        return [], msgspec.convert(value, declared)
    except msgspec.ValidationError as error:
        struct = _struct_of(declared, value)
        inside = _mistakes_of(struct, value, place) if struct and isinstance(value, dict) else []
        return inside or [_mistake(str(error), declared, place)], None


def _may_miss(field: msgspec.structs.FieldInfo) -> bool:
    return not field.required and field.default is not msgspec.NODEFAULT


def _mistake(sentence: str, declared: Any, inside: Steps = ()) -> FieldError:  # noqa: ANN401 - a type or a value of any kind
    """Take msgspec's sentence apart into where and what."""
    place = _PLACE.search(sentence)
    steps: list[str | int] = []
    for name, index in _STEP.findall(place[1] if place else ""):
        steps.append(name or (int(index) if index.isdigit() else index))
    words = _PLACE.sub("", sentence)
    for pattern, told, kind in (
        (r"missing required field `(.+)`", "is required", "missing"),
        (r"contains unknown field `(.+)`", "is not a field of this object", "extra_forbidden"),
    ):
        named = re.search(pattern, words)
        if named:
            return FieldError(("body", *inside, *steps, named[1]), told, kind)
    told, kind = _told(words, declared, steps)
    return FieldError(("body", *inside, *steps), told, kind)


def _told(words: str, declared: Any, steps: Sequence[str | int]) -> tuple[str, str]:  # noqa: ANN401 - a type or a value of any kind
    """Return what would be right, and the word for machines."""
    if words in _FORMS:
        return _FORMS[words]
    if types := _TYPES.fullmatch(words):
        wanted = " or ".join(_noun(each) for each in types[1].split(" | "))
        return f"must be {wanted}, not {_FOUND.get(types[2]) or _noun(types[2])}", "type_error"
    if words.startswith("Invalid ") and (known := _choices(declared, steps)):
        return f"must be one of {', '.join(known)}", "value_error"
    if "matching regex" in words:
        return _form(declared, steps), "value_error"
    return _limit(words), "value_error"


def _limit(words: str) -> str:
    if bound := _BOUND.fullmatch(words):
        return f"must be {_COMPARED[bound[1]]} {bound[2]}"
    if length := _LENGTH.fullmatch(words):
        what = "item" if length[1] == "array" else "character"
        plural = "" if length[3] == "1" else "s"
        return f"must have {_COMPARED[length[2]]} {length[3]} {what}{plural}"
    return words


def _noun(name: str) -> str:
    return _NOUNS.get(name, name)


def _choices(declared: Any, steps: Sequence[str | int]) -> list[str]:  # noqa: ANN401 - a type or a value of any kind
    """Return the values that may stand at a place: those of a Literal, or the tags of a union."""
    found = [
        str(value)
        for each, _ in _types_at(inspect.type_info(declared), steps)
        if isinstance(each, inspect.LiteralType)
        for value in each.values
    ]
    if found or not steps:
        return found
    return [
        str(each.tag)
        for each, _ in _types_at(inspect.type_info(declared), steps[:-1])
        if isinstance(each, inspect.StructType) and each.tag_field == steps[-1]
    ]


def _form(declared: Any, steps: Sequence[str | int]) -> str:  # noqa: ANN401 - a type or a value of any kind
    """Return what a text should look like, in the words of its declaration."""
    for each, description in _types_at(inspect.type_info(declared), steps):
        if isinstance(each, inspect.StrType) and each.pattern is not None:
            if each.pattern == NOT_BLANK:
                return "may not be blank"
            return f"must be {description}" if description else f"must match {each.pattern}"
    return "does not have the form that is expected here"


def _types_at(
    info: inspect.Type, steps: Sequence[str | int], description: str | None = None
) -> Iterator[tuple[inspect.Type, str | None]]:
    """Yield what may stand at a place, each alternative by itself, with its description."""
    if isinstance(info, inspect.Metadata):
        told = (info.extra_json_schema or {}).get("description", description)
        yield from _types_at(info.type, steps, told)
    elif isinstance(info, inspect.UnionType):
        for each in info.types:
            yield from _types_at(each, steps, description)
    elif not steps:
        yield info, description
    else:
        for each in _types_inside(info, steps[0]):
            yield from _types_at(each, steps[1:])


def _types_inside(info: inspect.Type, step: str | int) -> list[inspect.Type]:
    if isinstance(info, inspect.StructType):
        return [field.type for field in info.fields if field.encode_name == step]
    if isinstance(info, inspect.CollectionType):
        return [info.item_type]
    return [info.value_type] if isinstance(info, inspect.DictType) else []


def _struct_of(declared: Any, raw: Any) -> type[msgspec.Struct] | None:  # noqa: ANN401 - a type or a value of any kind
    """Return the one struct an object may be, by its tag where it may be several, or None."""
    kinds = [
        each
        for each in (typing.get_args(declared) or (declared,))
        if isinstance(each, type) and issubclass(each, msgspec.Struct)
    ]
    if len(kinds) > 1 and isinstance(raw, dict):
        kinds = [each for each in kinds if _tag_of(each) and raw.get(str(_tag_of(each))) == each.__struct_config__.tag]
    return kinds[0] if len(kinds) == 1 else None


def _tag_of(struct: type[msgspec.Struct]) -> str | None:
    return struct.__struct_config__.tag_field
