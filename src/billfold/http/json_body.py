"""JSON bodies, strictly: UTF-8, no name twice, no control character, not too deep, exact types.

A body of the wrong shape is answered with every mistake: each field that is missing, unknown or of another type.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import msgspec

from billfold.http.schemas import CheckedBody
from billfold.http.validation_errors import field_errors, mistakes_in
from billfold.platform.dates import require_aware
from billfold.platform.errors import BillfoldError, FieldError, InvalidInput

DEPTH_MAX = 32
ITEMS_MAX = 1000
_STRINGS = re.compile(rb'"(?:[^"\\]|\\.)*"')
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufffe\uffff]")
"""What neither a database nor XML can hold, and what terminals obey. Tab and line ends may stay."""
_HALF = re.compile("[\ud800-\udfff]")
"""Half of a pair of UTF-16, which is no character."""
_MAYBE_WRONG = re.compile(
    rb"\\[bf]|\\u[dD][89a-fA-F]|\\u00[0189]|\\u007[fF]|\\u[fF]{3}[eEfF]|\x7f|\xc2[\x80-\x9f]|\xef\xbf[\xbe\xbf]"
)


class _NotJson(ValueError):
    """What Python would let pass."""


def check_json(body: bytes) -> None:
    """Raise `malformed-json` unless these bytes are JSON that is read in one way only."""
    if body.count(b"[") + body.count(b"{") > DEPTH_MAX and _depth(body) > DEPTH_MAX:
        raise _malformed(f"It nests deeper than {DEPTH_MAX} levels.")
    try:
        decoded = json.loads(body.decode(), object_pairs_hook=_unique, parse_constant=_refuse)
    except UnicodeDecodeError:
        raise _malformed("It is not UTF-8.") from None
    except (json.JSONDecodeError, _NotJson, RecursionError) as error:
        raise _malformed(str(error).replace("\n", " ")) from None
    except ValueError:
        raise _malformed("A number in it has thousands of digits.") from None
    if _MAYBE_WRONG.search(body):
        _check_texts(decoded)
    if body.count(b",") >= ITEMS_MAX:
        _check_lists(decoded, ())


@contextmanager
def in_body() -> Iterator[None]:
    """Prefix the place of mistakes with `body`."""
    try:
        yield
    except InvalidInput as wrong:
        raise InvalidInput(FieldError(("body", *each.loc), each.msg, each.type) for each in wrong.errors) from None


def instant_in_body(name: str, at: datetime) -> datetime:
    """Return a time that a body names, in UTC. Raises InvalidInput at body.`name`."""
    try:
        return require_aware(at).astimezone(UTC)
    except ValueError:
        wrong = "needs an offset, such as Z or -04:00"
    except OverflowError:
        wrong = "must lie in the years 1 to 9999 of UTC"
    raise InvalidInput.at("body", name, msg=wrong)


def decode(body: bytes, declared: Any) -> Any:  # noqa: ANN401 - whatever the operation declares
    """Return a body as its declared type. Raises `malformed-json` or InvalidInput at `body`."""
    check_json(body)
    try:
        decoded = msgspec.json.decode(body, type=declared)
    except msgspec.ValidationError:
        raise InvalidInput(mistakes_in(body, declared)) from None
    except msgspec.DecodeError as error:
        raise _malformed(str(error)) from None
    if isinstance(decoded, CheckedBody) and (wrong := list(field_errors(decoded))):
        raise InvalidInput(wrong)
    return decoded


def missing_body() -> InvalidInput:
    """Return the refusal of a request that should have a body."""
    return InvalidInput.at("body", msg="a JSON body is required", kind="missing")


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
            raise InvalidInput.at("body", *place, msg=f"may have at most {ITEMS_MAX} items", kind="too_long")
        for index, each in enumerate(value):
            _check_lists(each, (*place, index))
    elif isinstance(value, dict):
        for name, each in value.items():
            _check_lists(each, (*place, name))


def _check_texts(decoded: object) -> None:
    texts = list(_texts(decoded, ()))
    if any(_HALF.search(text) for _, text in texts):
        raise _malformed("A text in it has half of a surrogate pair.")
    wrong = [
        FieldError(("body", *place), "may not hold control characters", "value_error")
        for place, text in texts
        if _CONTROL.search(text)
    ]
    if wrong:
        raise InvalidInput(wrong)


def _texts(value: object, place: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield every text with its place; the name of a field stands at the object it is in."""
    if isinstance(value, str):
        yield place, value
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from _texts(each, (*place, index))
    elif isinstance(value, dict):
        for name, each in value.items():
            yield place, name
            yield from _texts(each, (*place, name))


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _NotJson("An object repeats a name.")
    return found


def _refuse(constant: str) -> None:
    raise _NotJson(f"{constant} is not JSON.")


def _malformed(why: str) -> BillfoldError:
    return BillfoldError("malformed-json", f"The body is not JSON as it should be. {why}")
