"""JSON, read strictly: UTF-8 without repeated names, control characters, deep nesting or endless lists."""

import json
import re
from collections.abc import Iterator
from itertools import accumulate
from typing import Any

from billfold.platform.crypto import is_sealed_text
from billfold.platform.errors import BillfoldError, FieldError, InvalidInput

DEPTH_MAX = 32
ITEMS_MAX = 1000
# Possessive, and closed by the end too: each byte is looked at once.
_STRING = re.compile(rb'"(?:[^"\\]|\\.?)*+"?', re.DOTALL)
_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufffe\uffff]")
"""What neither a database nor XML can hold, what terminals obey, and what shows a text in another order."""
_NOT_IN_NAMES = re.compile("[\t\n\r\u061c\u200e\u200f\u2028\u2029]")
"""What ends the line of a name or an address, or turns its direction. Other texts may have it."""
_HALF = re.compile("[\ud800-\udfff]")  # of a pair of UTF-16, which is no character
_MAYBE_WRONG = re.compile(
    rb"\\[bfnrt]|\\u[dD][89a-fA-F]|\\u00[0189]|\\u007[fF]|\\u20[026]|\\u061[cC]|\\u[fF]{3}[eEfF]"
    rb"|\"sealed:|\\u00[2-7]|\x7f|\xc2[\x80-\x9f]|\xd8\x9c|\xe2\x80[\x8e\x8f\xa8-\xae]|\xe2\x81[\xa6-\xa9]|\xef\xbf[\xbe\xbf]"
)


def has_control(text: str) -> bool:
    """Tell whether a text has a character that neither a database nor XML can hold."""
    return CONTROL.search(text) is not None


class _NotJson(ValueError):
    """What Python would let pass."""


def check_json(body: bytes) -> None:
    """Raise `malformed-json` unless these bytes are JSON that is read in one way only.

    Every step takes time in proportion to the length of the body, whatever is in it.
    """
    # Before it is decoded: how deep a decoder can go depends on what else raised the limit of recursion.
    if body.count(b"[") + body.count(b"{") > DEPTH_MAX and _depth(body) > DEPTH_MAX:
        raise malformed(f"It nests deeper than {DEPTH_MAX} levels.")
    try:
        decoded = json.loads(body.decode(), object_pairs_hook=_unique, parse_constant=_refuse)
    except UnicodeDecodeError:
        raise malformed("It is not UTF-8.") from None
    except (json.JSONDecodeError, _NotJson) as error:
        raise malformed(str(error).replace("\n", " ")) from None
    except ValueError:
        raise malformed("A number in it has thousands of digits.") from None
    if body.count(b",") >= ITEMS_MAX:
        _check_size(decoded, ())
    if _MAYBE_WRONG.search(body):
        _check_texts(decoded)


def _depth(body: bytes) -> int:
    brackets = _STRING.sub(b"", body).translate(None, delete=_NOT_BRACKETS)
    return max(accumulate(1 if each in b"[{" else -1 for each in brackets), default=0)


def _check_size(value: object, place: tuple[str | int, ...]) -> None:
    if not isinstance(value, list | dict):
        return
    if len(value) > ITEMS_MAX:
        raise InvalidInput.at("body", *place, msg=f"may have at most {ITEMS_MAX} items", kind="too_long")
    for step, each in enumerate(value) if isinstance(value, list) else value.items():
        _check_size(each, (*place, step))


def _check_texts(decoded: object) -> None:
    texts = list(texts_in(decoded, ()))
    if any(_HALF.search(text) for _, text in texts):
        raise malformed("A text in it has half of a surrogate pair.")
    wrong = [
        FieldError(("body", *place), "may not hold control characters", "value_error")
        for place, text in texts
        if has_control(text) or (_NOT_IN_NAMES.search(text) and _is_name(place))
    ]
    # Where stored texts are opened, one that a client wrote must not be taken for one that the bank encrypted.
    wrong += [
        FieldError(("body", *place), "may not look like an encrypted value", "value_error")
        for place, text in texts
        if is_sealed_text(text)
    ]
    if wrong:
        raise InvalidInput(wrong)


def _is_name(place: tuple[str | int, ...]) -> bool:
    return any(str(step).endswith(("name", "address", "name_on_card")) for step in place)


def texts_in(value: object, place: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield every text with its place; the name of a field stands at the object it is in."""
    if isinstance(value, str):
        yield place, value
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from texts_in(each, (*place, index))
    elif isinstance(value, dict):
        for name, each in value.items():
            yield place, name
            yield from texts_in(each, (*place, name))


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _NotJson("An object repeats a name.")
    return found


def _refuse(constant: str) -> None:
    raise _NotJson(f"{constant} is not JSON.")


def malformed(why: str) -> BillfoldError:
    """Return the refusal of bytes that are not JSON as it should be."""
    return BillfoldError("malformed-json", f"The body is not JSON as it should be. {why}")
