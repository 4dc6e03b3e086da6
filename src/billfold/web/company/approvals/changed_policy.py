"""A proposed policy, rule by rule, compared with the version in force."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from billfold.approvals.policies.routes import get_policy
from billfold.platform.errors import NotFound
from billfold.policies.types import PolicyDocument, PolicyRule, Refuse
from billfold.web.console.team import Company


class ChangedField(NamedTuple):
    """A field of a change: its current value, None if it is new, and its proposed value."""

    name: str
    before: str | None
    after: str


async def read_policy(company: Company) -> dict[str, Any]:
    """Return the policy in force; empty before the first version."""
    try:
        found: dict[str, Any] = msgspec.to_builtins(await company.api.get(get_policy))
    except NotFound:
        return {}
    return found


def facts_of_policy(change: Mapping[str, Any], before: Mapping[str, Any]) -> list[ChangedField]:
    """Return a line per rule of a proposed policy, in its order, and of the rules that it removes."""
    proposed = msgspec.convert(change["document"], PolicyDocument)
    current = msgspec.convert(before["document"], PolicyDocument) if before else None
    now = {each.name: _text(each) for each in current.rules} if current else {}
    facts = [
        ChangedField("Version", str(before["version"]) if before else None, str(change["replaces"] + 1)),
        ChangedField("Rules", _names(current) if current else None, _names(proposed)),
        *(ChangedField(f"Rule {each.name}", now.pop(each.name, None), _text(each)) for each in proposed.rules),
        *(ChangedField(f"Rule {name}", text, "removed") for name, text in now.items()),
    ]
    tests = str(len(current.tests) or "none") if current else None
    return [*facts, ChangedField("Tests", tests, str(len(proposed.tests) or "none"))]


def _names(document: PolicyDocument) -> str:
    return ", ".join(each.name for each in document.rules) or "none"


def _text(rule: PolicyRule) -> str:
    then = rule.then
    if isinstance(then, Refuse):
        return f"If {rule.when}: refuse, {then.reason!r}"
    by = f" by {' or '.join(then.roles)}" if then.roles else ""
    return f"If {rule.when}: require {then.approvals} approval{'s' * (then.approvals != 1)}{by}"
