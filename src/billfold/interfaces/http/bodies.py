"""JSON bodies, strictly: UTF-8, no name twice, not too deep, no list too long, exact types.

A body of the wrong shape is told in full: every field that is missing, unknown or of another type.
"""

from __future__ import annotations

import json
import re
import typing
from typing import Any

import msgspec

from billfold.kit.errors import BillfoldError, FieldError, InvalidInput

DEPTH_MAX = 32
ITEMS_MAX = 1000
_STRINGS = re.compile(rb'"(?:[^"\\]|\\.)*"')
_PLACE = re.compile(r" - at `(?:key in )?\$([^`]*)`$")
_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+|\.\.\.)\]")


def check_json(body: bytes) -> None:
    """Raise `malformed-json` unless these bytes are JSON that is read in one way only."""
    if body.count(b"[") + body.count(b"{") > DEPTH_MAX and _depth(body) > DEPTH_MAX:
        raise _malformed(f"It nests deeper than {DEPTH_MAX} levels.")
    try:
        decoded = json.loads(body.decode(), object_pairs_hook=_unique, parse_constant=_refuse)
    except UnicodeDecodeError:
        raise _malformed("It is not UTF-8.") from None
    except (ValueError, RecursionError) as error:
        raise _malformed(str(error).replace("\n", " ")) from None
    if body.count(b",") >= ITEMS_MAX:
        _check_lists(decoded, ())


def decode(body: bytes, declared: Any) -> Any:  # noqa: ANN401 - whatever the operation declares
    """Return a body as its declared type. Raises `malformed-json` or InvalidInput at `body`."""
    check_json(body)
    try:
        return msgspec.json.decode(body, type=declared)
    except msgspec.ValidationError as error:
        raise InvalidInput(_mistakes(body, declared, error)) from None
    except msgspec.DecodeError as error:
        raise _malformed(str(error)) from None


def missing_body() -> InvalidInput:
    """Return the refusal of a request that should have a body."""
    return InvalidInput.at("body", msg="a JSON body is required", kind="missing")


def _mistakes(body: bytes, declared: Any, first: msgspec.ValidationError) -> list[FieldError]:  # noqa: ANN401
    """Return every mistake among the fields of the body's own level, deeper ones one by one."""
    raw = json.loads(body)
    struct = _struct_of(declared)
    if struct is None or not isinstance(raw, dict):
        return [_mistake(str(first), ())]
    fields = {each.encode_name: each for each in msgspec.structs.fields(struct)}
    found = [
        FieldError(("body", name), "is required", "missing")
        for name, each in fields.items()
        if each.required and name not in raw
    ]
    for name, value in raw.items():
        if name in fields:
            found += _field_mistakes(name, value, fields[name].type)
        elif struct.__struct_config__.forbid_unknown_fields and name != _tag_of(struct):
            found.append(
                FieldError(("body", name), "is not a field of this body", "extra_forbidden")
            )
    return found or [_mistake(str(first), ())]


def _field_mistakes(name: str, value: Any, declared: Any) -> list[FieldError]:  # noqa: ANN401
    try:
        msgspec.convert(value, declared)
    except msgspec.ValidationError as error:
        return [_mistake(str(error), (name,))]
    return []


def _mistake(sentence: str, inside: tuple[str, ...]) -> FieldError:
    """Take msgspec's sentence apart into where and what."""
    place = _PLACE.search(sentence)
    steps: list[str | int] = []
    for name, index in _STEP.findall(place[1] if place else ""):
        steps.append(name or (int(index) if index.isdigit() else index))
    words = _PLACE.sub("", sentence)
    for pattern, kind in ((r"missing required field `(.+)`", "missing"),
                          (r"contains unknown field `(.+)`", "extra_forbidden")):  # fmt: skip
        named = re.search(pattern, words)
        if named:
            steps.append(named[1])
            words = "is required" if kind == "missing" else "is not a field of this object"
            return FieldError(("body", *inside, *steps), words, kind)
    kind = "type_error" if words.startswith("Expected `") and ", got" in words else "value_error"
    return FieldError(("body", *inside, *steps), words, kind)


def _struct_of(declared: Any) -> type[msgspec.Struct] | None:  # noqa: ANN401
    """Return the one struct a body may be, or None when it may be several or none."""
    kinds = [
        each
        for each in (typing.get_args(declared) or (declared,))
        if isinstance(each, type) and issubclass(each, msgspec.Struct)
    ]
    return kinds[0] if len(kinds) == 1 else None


def _tag_of(struct: type[msgspec.Struct]) -> str | None:
    return struct.__struct_config__.tag_field


def _depth(body: bytes) -> int:
    deepest = level = 0
    for byte in _STRINGS.sub(b"", body):
        if byte in b"[{":
            level += 1
            deepest = max(deepest, level)
        elif byte in b"]}":
            level -= 1
    return deepest


def _check_lists(value: object, place: tuple[str | int, ...]) -> None:
    if isinstance(value, list):
        if len(value) > ITEMS_MAX:
            raise InvalidInput.at(
                "body", *place, msg=f"may have at most {ITEMS_MAX} items", kind="too_long"
            )
        for index, each in enumerate(value):
            _check_lists(each, (*place, index))
    elif isinstance(value, dict):
        for name, each in value.items():
            _check_lists(each, (*place, name))


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("An object repeats a name.")
    return found


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON.")


def _malformed(why: str) -> BillfoldError:
    return BillfoldError("malformed-json", f"The body is not JSON as it should be. {why}")
