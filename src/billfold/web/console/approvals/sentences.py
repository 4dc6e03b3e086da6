"""What a sensitive change is called, and what it would change, in words. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from billfold.approvals.schemas import AuthorizationRequest
from billfold.platform.money import format_usd

_SENTENCES = {
    "approval_rule.create": "New approval rule",
    "approval_rule.update": "Changed approval rule",
    "approval_rule.delete": "Approval rule removed",
    "member.invite": "Invitation into the team",
    "member.reinvite": "Invitation into the team, again",
    "member.update": "Changed role or status of a member",
    "service_user.create": "New service user",
    "service_user.add_key": "New key of a service user",
    "counterparty.create": "New counterparty",
}
_UNSHOWN = frozenset(
    {
        "object_type",
        "time_created",
        "updated_at",
        "version",
        "id",
        "is_screened",
        "target_customer_id",
        "holder_address",
    }
)


class Fact(NamedTuple):
    """A field of a change: what it is now, None where it is new, and what it would be."""

    name: str
    before: str | None
    after: str


def sentence_of_change(request: AuthorizationRequest) -> str:
    """Return what a change is called."""
    change = request.change
    named = next((each for each in change.values() if isinstance(each, Mapping)), change)
    name = named.get("name") or named.get("email") or _name_in(named.get("counterparty_name")) or ""
    return f"{_SENTENCES[request.action]}{f': {name}' if name else ''}"


def facts_of_change(request: AuthorizationRequest, before: Mapping[str, Any]) -> list[Fact]:
    """Return every field of a change as it is approved, with what it is now as far as that is known."""
    change = request.change
    inner = next((each for each in change.values() if isinstance(each, Mapping)), {})
    flat = {**{name: each for name, each in change.items() if not isinstance(each, Mapping)}, **dict(_flat(inner))}
    now = dict(_flat(before))
    return [
        Fact(_label(name), None if name not in now else _as_dollars(name, now[name]), _as_dollars(name, text))
        for name, value in flat.items()
        if name not in _UNSHOWN and (text := _text(value)) is not None
    ]


def _label(name: str) -> str:
    """Return what a field is called; one of an amount says so by what is in it."""
    return name.removesuffix("_usdc").replace("_", " ").capitalize()


def _as_dollars(name: str, text: str) -> str:
    """Return the text of a field, cents as dollars."""
    return format_usd(int(text)) if name.endswith("_usdc") and text and text.isdigit() else text


def _flat(values: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from ((f"{name} {inner}", _text(each)) for inner, each in _flat(value))
        else:
            yield name, _text(value)


def _text(value: Any) -> str | None:  # noqa: ANN401 - any JSON
    if value is None or value == "":
        return None
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value)) or "any"
    return str(value)


def _name_in(name: Any) -> str:  # noqa: ANN401 - any JSON
    if not isinstance(name, Mapping):
        return ""
    return name.get("business_name") or f"{name.get('first_name', '')} {name.get('last_name', '')}".strip()
