"""Checks a document with its tests, and decides about a payment. Pure."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final, Literal, NamedTuple

import msgspec

from billfold.identity.users.rules import PERMISSIONS
from billfold.platform.errors import FieldError, InvalidInput
from billfold.policies.expressions import CompiledCondition, ConditionError, bind, facts_of
from billfold.policies.types import (
    DOCUMENT_MAX,
    Expected,
    PolicyDecision,
    PolicyDocument,
    PolicyRule,
    Refuse,
    Require,
)

_MAY_APPROVE: Final = "transfers.approve"
ALLOWED: Final = PolicyDecision()


class CompiledPolicy(NamedTuple):
    """The rules of a document with their conditions, or why one cannot be compiled any more."""

    rules: tuple[tuple[PolicyRule, CompiledCondition | ConditionError], ...]

    def decide(self, facts: Mapping[str, Any]) -> PolicyDecision:
        """Decide about the payment with these facts, as `facts_of` returns them.

        The first rule that refuses decides; else the one that requires the most approvals, of equals the first. A
        condition without a result refuses: nothing is paid that a policy could not decide about.
        """
        found, bound = ALLOWED, bind(facts) if self.rules else None
        for rule, condition in self.rules:
            try:
                if isinstance(condition, ConditionError):
                    raise condition
                if not condition.holds(bound):
                    continue
            except ConditionError as wrong:
                reason = f"The policy rule {rule.name!r} cannot be decided: {wrong}."
                return PolicyDecision(rule=rule.name, reason=reason)
            if isinstance(rule.then, Refuse):
                return PolicyDecision(rule=rule.name, reason=rule.then.reason)
            if rule.then.approvals > found.approvals:
                found = PolicyDecision(rule=rule.name, approvals=rule.then.approvals, roles=tuple(rule.then.roles))
        return found


@lru_cache(64)
def compile_policy(text: str) -> CompiledPolicy:
    """Return the policy of a document that was checked before, by this release or by an earlier one."""
    document = msgspec.json.decode(text, type=PolicyDocument)
    return CompiledPolicy(tuple((each, _compiled(each)) for each in document.rules))


def _compiled(rule: PolicyRule) -> CompiledCondition | ConditionError:
    try:
        return CompiledCondition(rule.when)
    except ConditionError as wrong:
        return wrong


class PolicyTestResult(msgspec.Struct, kw_only=True):
    """The result of a test: what it expects, and what the policy decides."""

    name: str
    passed: bool
    expected: Expected
    decision: Literal["ALLOW", "REFUSE", "REQUIRE"]
    rule: str | None
    approvals: int
    reason: str | None


def run_tests(document: PolicyDocument, text: str) -> list[PolicyTestResult]:
    """Run the tests of a document, given also as its canonical text. Raises InvalidInput at `rules`."""
    mistakes = list(_mistakes_in(document, text))
    if mistakes:
        raise InvalidInput(mistakes)
    policy = compile_policy(text)
    results = []
    for test in document.tests:
        found, wanted = policy.decide(facts_of(test.payment, test.used)), test.expect
        passed = (
            found.decision == wanted.decision
            and wanted.rule in {None, found.rule}
            and wanted.approvals in {None, found.approvals}
        )
        results.append(
            PolicyTestResult(
                name=test.name,
                passed=passed,
                expected=wanted,
                decision=found.decision,
                rule=found.rule,
                approvals=found.approvals,
                reason=found.reason,
            )
        )
    return results


def check_document(document: PolicyDocument, text: str) -> None:
    """Raise InvalidInput for everything that is wrong with a document, with all of its tests that fail."""
    failed = [
        FieldError(("document", "tests", place), f"{each.name!r} fails: {_of(each)}", "value_error")
        for place, each in enumerate(run_tests(document, text))
        if not each.passed
    ]
    if failed:
        raise InvalidInput(failed)


def _of(result: PolicyTestResult) -> str:
    by = f" by the rule {result.rule!r}" if result.rule else ""
    approvals = f", {result.approvals} approvals" if result.approvals else ""
    return f"the policy decides {result.decision}{by}{approvals}"


def _mistakes_in(document: PolicyDocument, text: str) -> Iterator[FieldError]:
    if len(text) > DOCUMENT_MAX:
        yield FieldError(("document",), f"has more than {DOCUMENT_MAX} characters as JSON", "too_long")
    yield from _repeated("rules", [each.name for each in document.rules])
    yield from _repeated("tests", [each.name for each in document.tests])
    for place, rule in enumerate(document.rules):
        if isinstance(wrong := _compiled(rule), ConditionError):
            yield FieldError(("document", "rules", place, "when"), str(wrong), "value_error")
        if isinstance(rule.then, Require):
            for at, role in enumerate(rule.then.roles):
                if _MAY_APPROVE not in PERMISSIONS[role]:
                    yield FieldError(
                        ("document", "rules", place, "then", "roles", at),
                        f"{role} does not include {_MAY_APPROVE}",
                        "enum",
                    )


def _repeated(field: str, names: Iterable[str]) -> Iterator[FieldError]:
    for name, times in Counter(names).items():
        if times > 1:
            yield FieldError(("document", field), f"has the name {name!r} {times} times", "value_error")
