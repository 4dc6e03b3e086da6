"""The text of a policy as its author writes it: read, with the place of each mistake, and templates to start from."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from billfold.platform.errors import FieldError, InvalidInput
from billfold.policies.expressions import facts_of
from billfold.policies.types import PaymentFacts, PolicyDocument, Used

_SPACE = re.compile(r"[ \t\r\n]*")
_SCAN = json.JSONDecoder().raw_decode
_PARTS = {"rules": "Rule", "tests": "Test"}


class Mistake(NamedTuple):
    """A mistake in a text: its line, the rule or test, and why."""

    line: int
    where: str
    why: str


def read_text(text: str) -> Any:  # noqa: ANN401 - any JSON, or a Mistake
    """Return the JSON that a text is, or the mistake in it."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as wrong:
        return Mistake(wrong.lineno, "Not JSON", f"{wrong.msg}, at column {wrong.colno}")
    except (ValueError, RecursionError):
        return Mistake(1, "Not JSON", "a number is too long, or lists are nested too deep")


def mistakes_of(wrong: InvalidInput, text: str, document: Any) -> list[Mistake]:  # noqa: ANN401 - any JSON
    """Return the mistakes in a document at their lines in its text."""
    return [_mistake(each, text, document) for each in wrong.errors]


def _mistake(error: FieldError, text: str, document: Any) -> Mistake:  # noqa: ANN401 - as above
    way = [each for each in error.loc if each not in {"body", "document"}]
    where = "The document"
    if len(way) > 1 and way[0] in _PARTS and isinstance(way[1], int):
        named = document[way[0]][way[1]]
        name = named.get("name") if isinstance(named, dict) else None
        where = f"{_PARTS[str(way[0])]} {repr(name) if isinstance(name, str) else way[1] + 1}"
    field = ".".join(str(each) for each in way[2:])
    return Mistake(line_of(text, way), where, f"{field} {error.msg}".strip())


def line_of(text: str, way: list[Any]) -> int:
    """Return the line on which a value of a JSON text begins; of its nearest parent if it does not exist."""
    at = _skip(text, 0)
    for step in way:
        found = next((place for key, place in _entries(text, at) if key == step), None)
        if found is None:
            break
        at = found
    return text.count("\n", 0, at) + 1


def _entries(text: str, at: int) -> Iterator[tuple[Any, int]]:
    """Yield the keys of an object or list that begins at a place, and the places of their values."""
    opening, number = text[at], 0
    if opening not in "{[":
        return
    at = _skip(text, at + 1)
    while text[at] not in "}]":
        key: Any = number
        if opening == "{":
            key, at = _SCAN(text, at)
            at = _skip(text, _skip(text, at) + 1)
        yield key, at
        at = _skip(text, _SCAN(text, at)[1])
        at = _skip(text, at + 1) if text[at] == "," else at
        number += 1


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return at if found is None else found.end()


def written(document: Mapping[str, Any]) -> str:
    """Return a document as the text of the editor."""
    return json.dumps(document, indent=2, ensure_ascii=False)


def facts() -> list[tuple[str, str]]:
    """Return what a condition can read: the names of the facts, and their types in words."""
    kinds = {int: "whole number", str: "text", list: "list of texts"}
    return [(name, kinds[type(value)]) for name, value in facts_of(PaymentFacts(), Used()).items()]


def _template(
    title: str, words: str, name: str, when: str, then: Mapping[str, Any], *tests: Mapping[str, Any]
) -> tuple[str, str, Any]:
    return title, words, {"rules": [{"name": name, "when": when, "then": then}], "tests": list(tests)}


def _test(name: str, payment: Mapping[str, Any], decision: str, **used: int) -> dict[str, Any]:
    return {"name": name, "payment": payment, **({"used": used} if used else {}), "expect": {"decision": decision}}


TEMPLATES: Final[Mapping[str, tuple[str, str, Any]]] = {
    "large": _template(
        "Two approvals for large payments",
        "From $50,000.00 on, two members approve.",
        "large payments",
        "payment.direction == 'OUT' && payment.amount_cents >= 5000000",
        {"decision": "REQUIRE", "approvals": 2},
        _test("a large payment", {"amount_cents": 5_000_000}, "REQUIRE"),
        _test("one cent less", {"amount_cents": 4_999_999}, "ALLOW"),
    ),
    "daily-limit": _template(
        "A limit per day",
        "What would bring the payments of a day above $500,000.00 is refused.",
        "per day",
        "payment.direction == 'OUT' && used.today_cents + payment.amount_cents > 50000000",
        {"decision": "REFUSE", "reason": "No more than $500,000.00 a day."},
        _test("one cent over the limit of a day", {"amount_cents": 101}, "REFUSE", today_cents=49_999_900),
    ),
    "new-payees": _template(
        "An administrator approves new payees",
        "From $1,000.00 on, for payees added in the last 14 days.",
        "new payees",
        "payment.direction == 'OUT' && payment.payee.age_days < 14 && payment.amount_cents >= 100000",
        {"decision": "REQUIRE", "approvals": 1, "roles": ["ADMIN"]},
        _test("a payee added last week", {"amount_cents": 100_000, "payee": {"age_days": 7}}, "REQUIRE"),
    ),
    "business-hours": _template(
        "Wires in business hours only",
        "On weekdays from 8 am to 6 pm New York time; others are refused.",
        "business hours",
        "payment.rail == 'WIRE' && (payment.at.weekday in ['SAT', 'SUN'] || payment.at.hour < 8 || "
        "payment.at.hour >= 18)",
        {"decision": "REFUSE", "reason": "Wires are sent on weekdays from 8 am to 6 pm New York time."},
        _test("a wire on Saturday", {"rail": "WIRE", "at": {"weekday": "SAT"}, "payee": {"age_days": 30}}, "REFUSE"),
    ),
    "countries": _template(
        "Allowed countries",
        "International wires to Canada, Germany and the United Kingdom only.",
        "countries",
        "payment.payee.kind == 'international_wire' && !(payment.payee.country in ['CA', 'DE', 'GB'])",
        {"decision": "REFUSE", "reason": "We pay to Canada, Germany and the United Kingdom only."},
        _test("a wire to France", {"payee": {"kind": "international_wire", "country": "FR", "age_days": 30}}, "REFUSE"),
    ),
}
"""Documents to start from: what each is called, what it does, and its rule with its tests."""


def with_template(document: PolicyDocument, name: str) -> dict[str, Any]:
    """Return a document with the rule and the tests of a template, unless it has a rule of that name."""
    found: dict[str, Any] = msgspec.to_builtins(document)
    _, _, added = TEMPLATES.get(name, ("", "", {"rules": [], "tests": []}))
    for part in ("rules", "tests"):
        known = {each["name"] for each in found[part]}
        found[part] += [each for each in added[part] if each["name"] not in known]
    return found
