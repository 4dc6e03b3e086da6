"""The policy of a company: the version in force, its history, and an editor that checks, tries and proposes."""

from collections.abc import Mapping
from typing import Any, NamedTuple
from uuid import UUID

import msgspec
from litestar import get, post

from billfold.accounts.counterparties.store import list_by_ids
from billfold.accounts.counterparties.types import format_name
from billfold.approvals.authorization_requests import POLICY_CHANGE
from billfold.approvals.policies import routes
from billfold.approvals.policies.backtest import Backtest, TriedDecision
from billfold.approvals.routes import list_authorization_requests
from billfold.approvals.rules import find_blocker_of_team
from billfold.approvals.store.requests import TRANSFER_REQUESTS
from billfold.approvals.store.reviews import list_team
from billfold.approvals.types import ApprovalRequirement, Reviewer, TransferRequest
from billfold.platform.errors import InvalidInput, NotFound, Refused
from billfold.policies.types import PolicyDocument, PolicyRule, Require
from billfold.web.company.approvals.policy_text import (
    TEMPLATES,
    Mistake,
    facts,
    mistakes_of,
    read_text,
    with_template,
    written,
)
from billfold.web.company.approvals.rule_words import ROLES, listed, names_of
from billfold.web.console.team import Company, InCompany
from billfold.web.page_context import FormError, PageResponse, redirect

_PATH = "/companies/{customer_id:str}/policy"
_VERSIONS = 20
_TRIED_MAX = 3_000
_CHANGED_MAX = 50
_BODY_BYTES_MAX = 256 * 1024
"""A document of the greatest length, indented, and encoded as a form."""
_NOTHING = PolicyDocument(rules=[])


class ShownPolicyRule(NamedTuple):
    """A rule of a policy, its decision in words, and why nobody could give the approvals, if so."""

    rule: PolicyRule
    sentence: str
    lockout: str | None


class ChangedPayment(NamedTuple):
    """A past payment that would be decided otherwise: its request, payee, and both decisions in words."""

    request: TransferRequest
    payee: str
    before: str
    after: str


class Tried(NamedTuple):
    """The result of a backtest: the payments tried, those decided otherwise, and the month to go on with."""

    payments: int
    changed: int
    shown: list[ChangedPayment]
    since: Any
    further: Any


def _shown(document: PolicyDocument, team: list[Reviewer]) -> list[ShownPolicyRule]:
    return [ShownPolicyRule(each, _sentence(each), _find_lockout(each, team)) for each in document.rules]


def _sentence(rule: PolicyRule) -> str:
    then = rule.then
    if not isinstance(then, Require):
        return f"Refused: {then.reason}"
    by = f" from {listed([ROLES.get(each, each.title()) for each in then.roles], 'or')}" if then.roles else ""
    return f"Needs {then.approvals} approval{'s' * (then.approvals != 1)}{by}"


def _find_lockout(rule: PolicyRule, team: list[Reviewer]) -> str | None:
    then = rule.then
    if not isinstance(then, Require):
        return None
    terms = ApprovalRequirement(required=then.approvals, policy_rule=rule.name, policy_roles=tuple(then.roles))
    return find_blocker_of_team(terms, team, "TRANSFER")


async def _find_policy(company: Company) -> routes.Policy | None:
    try:
        found: routes.Policy = await company.api.get(routes.get_policy)
    except NotFound:
        return None
    return found


async def _team(company: Company) -> list[Reviewer]:
    return await list_team(company.page.pool, company.customer_id)


@get(_PATH)
async def show_policy(company: InCompany) -> PageResponse:
    """Show the version in force rule by rule, what is proposed, and the versions before."""
    return await _show(company, await _find_policy(company))


@get(f"{_PATH}/versions/{{version:str}}")
async def show_version(company: InCompany, version: str) -> PageResponse:
    """Show a version."""
    found = await company.api.get(routes.get_policy_version, version=version)
    return await _show(company, found)


async def _show(company: Company, found: routes.Policy | None) -> PageResponse:
    company.require("approval_rules.read")
    team = await _team(company)
    versions = await company.api.get(
        routes.list_policy_versions, limit=_VERSIONS, cursor=company.page.query.get("cursor")
    )
    pending = await company.api.get(
        list_authorization_requests, **{"action[]": POLICY_CHANGE, "status[]": "PENDING"}, limit=_VERSIONS
    )
    current = await _find_policy(company) if found else None
    return company.render(
        "policy",
        policy=found,
        current=current.version if current else 0,
        rules=_shown(found.document, team) if found else [],
        versions=versions,
        waiting=pending.items,
        names=names_of(team),
        templates=TEMPLATES,
    )


@post(f"{_PATH}/versions/{{version:str}}")
async def restore_version(company: InCompany, version: str) -> PageResponse:
    """Propose an earlier version again."""
    found = await company.api.get(routes.get_policy_version, version=version)
    body = {"restore_version": found.version}
    made = await company.api.send(routes.propose_policy, body, key=company.page.form_key)
    return redirect(f"{company.path}/approvals/changes/{made.id}", done="change-proposed")


@get(f"{_PATH}/edit")
async def show_editor(company: InCompany) -> PageResponse:
    """Show the editor with the version in force, or another one, and with a template."""
    query, found = company.page.query, await _find_policy(company)
    if version := query.get("version", ""):
        found = await company.api.get(routes.get_policy_version, version=version)
    document = with_template(found.document if found else _NOTHING, query.get("add", ""))
    return await _editor(company, written(document))


@post(f"{_PATH}/edit", body_bytes_max=_BODY_BYTES_MAX)
async def check_or_propose(company: InCompany) -> PageResponse:
    """Check the document of the editor and try it on past payments, or propose it."""
    company.require("approval_rules.write")
    form = company.page.form
    text = form.get("document", "").replace("\r\n", "\n")
    document = read_text(text)
    if isinstance(document, Mistake):
        return await _editor(company, text, mistakes=[document])
    try:
        if form.get("step") == "propose":
            made = await company.api.send(routes.propose_policy, {"document": document}, key=company.page.form_key)
            return redirect(f"{company.path}/approvals/changes/{made.id}", done="change-proposed")
        results = await company.api.send(routes.check_policy, {"document": document})
        tried = await _backtest(company, document, form.get("month", ""))
    except InvalidInput as wrong:
        return await _editor(company, text, mistakes=mistakes_of(wrong, text, document))
    except Refused as wrong:
        return await _editor(company, text, wrong=wrong)
    rules = _shown(msgspec.convert(document, PolicyDocument), await _team(company))
    return await _editor(company, text, results=results, tried=tried, rules=rules)


async def _editor(company: Company, text: str, *, wrong: FormError = "", **found: Any) -> PageResponse:
    company.require("approval_rules.write")
    current = await _find_policy(company)
    nothing: dict[str, Any] = {"mistakes": [], "results": None, "tried": None, "rules": []}
    return company.render(
        "policy_editor",
        wrong=wrong,
        status=422 if found.get("mistakes") else None,
        text=text,
        version=current.version if current else 0,
        templates=TEMPLATES,
        facts=facts(),
        **nothing | found,
    )


async def _backtest(company: Company, document: Any, month: str) -> Tried:  # noqa: ANN401 - any JSON
    """Try a document month by month, the newest first, until enough payments were tried, or a year."""
    body: dict[str, Any] = {"document": document, **({"month": month} if month else {})}
    payments = changed = 0
    items: list[Any] = []
    while True:
        found: Backtest = await company.api.send(routes.backtest_policy, body)
        payments, changed = payments + found.payments, changed + found.changed
        items += reversed(found.items)
        if found.previous_month is None or payments >= _TRIED_MAX or not found.complete:
            break
        body["month"] = found.previous_month.isoformat()
    shown = await _changed(company, items[:_CHANGED_MAX])
    return Tried(payments, changed, shown, found.month, found.previous_month)


async def _changed(company: Company, items: list[Any]) -> list[ChangedPayment]:
    """Return payments of a backtest with what they were about."""
    pool, key = company.page.pool, company.customer_id
    ids = [each.transfer_request_id for each in items]
    rows = await TRANSFER_REQUESTS.list_named(pool, key, ids, now=company.clock.now) if ids else []
    payees = await list_by_ids(pool, key, list({row.counterparty_id for row in rows if row.counterparty_id}))
    names: Mapping[UUID | None, str] = {
        each.counterparty_id: format_name(msgspec.json.decode(each.counterparty_name)) for each in payees
    }
    by_id = {each.transfer_request_id: each for each in items}
    return [
        ChangedPayment(
            row,
            names.get(row.counterparty_id, "Within the company, or a reversal"),
            _words(by_id[row.request_id].in_force),
            _words(by_id[row.request_id].tried),
        )
        for row in rows
    ]


def _words(decision: TriedDecision) -> str:
    if decision.decision == "REFUSE":
        return f"refused by {decision.rule}"
    if decision.decision == "ALLOW":
        return "no rule applies"
    return f"{decision.approvals} approval{'s' * (decision.approvals != 1)} by {decision.rule}"
