"""The approval queue, and the decision about a request, confirmed over the hash of what is shown."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple
from uuid import UUID

import msgspec
from litestar import get, post

from billfold.approvals.batch_preview import BATCH_MAX, preview_batch
from billfold.approvals.routes import (
    decide_authorization_request,
    get_authorization_request,
    list_authorization_requests,
)
from billfold.approvals.schemas import AuthorizationRequest, ShownTransferRequest
from billfold.approvals.transfer_requests_routes import (
    decide_transfer_request,
    get_transfer_request,
    list_transfer_requests,
)
from billfold.batches.members import needs_of
from billfold.batches.routes import list_first_payees, list_pending_batches
from billfold.batches.schemas import ShownBatch
from billfold.http.raw_request import is_uuid
from billfold.identity.users import store
from billfold.platform.errors import InvalidInput, NotFound, Refused
from billfold.team.routes import get_team_member
from billfold.web.company.approvals.change_words import as_dollars, label_of, text_of
from billfold.web.company.approvals.changed_policy import ChangedField, facts_of_policy, read_policy
from billfold.web.company.approvals.rule_words import words_of_rule
from billfold.web.company.approvals.signing import SignedDecision, confirm
from billfold.web.company.move_money import find_rule, read_around
from billfold.web.console.lists import names_of_pockets
from billfold.web.console.look_alikes import find_look_alikes
from billfold.web.console.team import Company, InCompany
from billfold.web.page_context import FormError, PageResponse, path_id, redirect

_SENTENCES = {
    "approval_rule.create": "New approval rule",
    "approval_rule.update": "Changed approval rule",
    "approval_rule.delete": "Approval rule removed",
    "policy.update": "Another policy",
    "member.invite": "Invitation into the team",
    "member.reinvite": "Invitation into the team, again",
    "member.update": "Changed role or status of a member",
    "service_user.create": "New service user",
    "service_user.add_key": "New key of a service user",
    "counterparty.create": "New counterparty",
}
_RAILS = {"ON_US": "Within this bank", "WIRE": "Wire", "USDC": "USDC"}
_UNSHOWN = frozenset(
    {
        "object_type",
        "time_created",
        "updated_at",
        "version",
        "id",
        "approver_ids",
        "is_screened",
        "target_customer_id",
        "holder_address",
        "counterparty_name type",
        "document_ids",
    }
)


def sentence_of_change(request: AuthorizationRequest) -> str:
    """Return the name of a change."""
    change = request.change
    named = next((each for each in change.values() if isinstance(each, Mapping)), change)
    name = named.get("name") or named.get("email") or _name_in(named.get("counterparty_name")) or ""
    return f"{_SENTENCES[request.action]}{f': {name}' if name else ''}"


def facts_of_change(request: AuthorizationRequest, before: Mapping[str, Any]) -> list[ChangedField]:
    """Return the fields that a change sets, those of something that exists only if they become others."""
    change = {name: value for name, value in request.change.items() if name != "before"}
    if request.action == "policy.update":
        return facts_of_policy(change, before)
    inner = next((each for each in change.values() if isinstance(each, Mapping)), {})
    flat = {**{name: each for name, each in change.items() if not isinstance(each, Mapping)}, **dict(_flat(inner))}
    now = dict(_flat(before))
    fields = [
        ChangedField(label_of(name), None if name not in now else as_dollars(name, now[name]), as_dollars(name, text))
        for name, value in flat.items()
        if name not in _UNSHOWN and (text := text_of(value)) is not None
    ]
    return [each for each in fields if each.before != each.after]


def _flat(values: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from ((f"{name} {inner}", text_of(each)) for inner, each in _flat(value))
        else:
            yield name, text_of(value)


def _name_in(name: Any) -> str:  # noqa: ANN401 - any JSON
    if not isinstance(name, Mapping):
        return ""
    return name.get("business_name") or f"{name.get('first_name', '')} {name.get('last_name', '')}".strip()


Waiting = ShownTransferRequest | AuthorizationRequest
_NEEDS = {ShownTransferRequest: "transfers.approve", AuthorizationRequest: "authorization_requests.write"}


class View(StrEnum):
    """Part of the queue."""

    MINE = "mine"
    OTHERS = "others"
    ALL = "all"


class QueuedRequest(NamedTuple):
    """A request in the queue: the path of its page, and whether the visitor may decide it."""

    id: UUID
    path: str
    sentence: str
    description: str
    amount: str
    cents: int | None
    """What can be approved together with others; None for what is read alone."""
    requested_by: str
    since: datetime
    progress: str
    blocked: str | None
    is_mine: bool


@get("/companies/{customer_id:str}/approvals")
async def show_approvals(company: InCompany) -> PageResponse:
    """Show the queue, oldest first."""
    sent = company.page.query.get("view", "")
    view, items = View(sent) if sent in set(View) else View.MINE, await list_waiting(company)
    shown = [each for each in items if view == View.ALL or each.is_mine == (view == View.MINE)]
    counts = {View.MINE: sum(each.is_mine for each in items), View.ALL: len(items)}
    return company.render(
        "approvals",
        view=view,
        items=shown,
        counts=counts | {View.OTHERS: counts[View.ALL] - counts[View.MINE]},
        to_approve=counts[View.MINE],
        decided=await _find_decided(company),
    )


async def list_waiting(company: Company) -> list[QueuedRequest]:
    """Return what waits for approval: transfers, changes and batches, the oldest first."""
    transfers = (await company.api.get(list_transfer_requests, status="PENDING", limit=BATCH_MAX)).items
    changes = await company.api.get(list_authorization_requests, **{"status[]": "PENDING"}, limit=BATCH_MAX)
    names = await names_of_pockets(company, [key for each in transfers for key in pockets_of(each) if key])
    items = [_of_transfer(company, each, names) for each in reversed(transfers)]
    items += [_of_change(company, each) for each in reversed(changes.items)]
    batches = await list_pending_batches(company.page.server.bank, company.customer_id, company.clock.now)
    first = await list_first_payees(company.page.server.bank, company.customer_id, batches[:BATCH_MAX])
    items += [_of_batch(company, each, first.get(each.id)) for each in batches[:BATCH_MAX]]
    return sorted(items, key=lambda each: each.since)


def may_decide(company: Company, request: Waiting) -> bool:
    """Tell whether the visitor could decide a request, as far as its content tells."""
    own = company.own.member_id
    is_named = not isinstance(request, ShownTransferRequest) or (
        not request.reviewers or own in {each.member_id for each in request.reviewers}
    )
    has_decided = any(each.reviewer.member_id == own and not each.is_void for each in request.reviews)
    return (
        request.status == "PENDING"
        and company.may(_NEEDS[type(request)])
        and request.requested_by.member_id != own
        and is_named
        and not has_decided
    )


def pockets_of(request: ShownTransferRequest) -> tuple[Any, Any]:
    """Return the Pocket that pays, and the company's own one that is paid, if there is."""
    return request.transfer.origin_pocket_id, (request.transfer.details or {}).get("destination_pocket_id")


def payee_of(request: ShownTransferRequest) -> UUID | None:
    """Return the counterparty that a transfer pays, if it pays one."""
    key = request.transfer.counterparty_id or (request.transfer.details or {}).get("destination_counterparty_id")
    return UUID(str(key)) if key else None


def _of_transfer(company: Company, request: ShownTransferRequest, names: dict[str, str]) -> QueuedRequest:
    transfer = request.transfer
    origin, own = pockets_of(request)
    to = transfer.counterparty_name or names.get(str(own), "Reversal")
    about = {"FULL_WITHDRAWAL": "About ", "REQUESTED_AMOUNT": ""}.get(transfer.amount_type, "Up to ")
    return _item(
        company,
        request,
        path=f"{company.path}/approvals/transfers/{request.id}",
        sentence=f"{names[str(origin)]} to {to}",
        description=", ".join(
            filter(None, (_RAILS[transfer.type], transfer.description, "on a schedule" if request.schedule else ""))
        ),
        amount=about + transfer.amount.formatted,
        cents=transfer.amount.value,
    )


def _of_change(company: Company, request: AuthorizationRequest) -> QueuedRequest:
    path = f"{company.path}/approvals/changes/{request.id}"
    return _item(
        company, request, path=path, sentence=sentence_of_change(request), description="", amount="", cents=None
    )


def _of_batch(company: Company, batch: ShownBatch, first: str | None) -> QueuedRequest:
    approval = batch.approval
    assert approval is not None
    held = sum(each.decision == "APPROVED" and not each.is_void for each in approval.reviews)
    others = batch.rows.total - 1
    more = f" and {others} {'other' if others == 1 else 'others'}" if others else ""
    named = f"{first}{more}. " if first else ""
    noun = {"TRANSFERS": "payment", "COUNTERPARTIES": "new payee", "POCKETS": "new Pocket"}[batch.kind]
    return QueuedRequest(
        id=batch.id,
        path=f"{company.path}/batches/{batch.id}",
        sentence=f"{batch.rows.total} {noun}{'' if batch.rows.total == 1 else 's'} in a batch",
        description=named + ("All or none" if batch.mode == "ATOMIC" else "Each by itself"),
        amount=batch.amount.formatted if batch.kind == "TRANSFERS" else "",
        cents=None,
        requested_by=f"{approval.requested_by.first_name} {approval.requested_by.last_name}".strip(),
        since=batch.time_created,
        progress=f"{held} of {approval.required_approvals}",
        blocked=approval.blocked_reason,
        is_mine=may_decide_batch(company, batch),
    )


def may_decide_batch(company: Company, batch: ShownBatch) -> bool:
    """Tell whether the visitor could decide a batch, as far as its content tells."""
    own, approval = company.own.member_id, batch.approval
    assert approval is not None
    return (
        batch.status == "PENDING"
        and company.may(needs_of(batch.kind))
        and approval.requested_by.member_id != own
        and (not approval.reviewers or own in {each.member_id for each in approval.reviewers})
        and not any(each.reviewer.member_id == own and not each.is_void for each in approval.reviews)
    )


def _item(company: Company, request: Waiting, *, cents: int | None, **shown: str) -> QueuedRequest:
    held = sum(each.decision == "APPROVED" and not each.is_void for each in request.reviews)
    person = request.requested_by
    return QueuedRequest(
        **shown,
        id=request.id,
        cents=cents,
        requested_by=f"{person.first_name} {person.last_name}".strip(),
        since=request.time_created,
        progress=f"{held} of {request.required_approvals}",
        blocked=request.blocked_reason,
        is_mine=may_decide(company, request),
    )


_NO_SUCH = "There is no such request."
_DONE = {"APPROVED": "request-approved", "DENIED": "request-denied"}


@get("/companies/{customer_id:str}/approvals/transfers/{request_id:str}")
async def show_transfer(company: InCompany, request_id: str) -> PageResponse:
    """Show a pending transfer."""
    return await _transfer_page(company, path_id(request_id, _NO_SUCH))


@post("/companies/{customer_id:str}/approvals/transfers/{request_id:str}")
async def decide_transfer(company: InCompany, request_id: str) -> PageResponse:
    """Approve or deny a transfer."""
    key = path_id(request_id, _NO_SUCH)
    found = await company.api.get(get_transfer_request, transfer_id=key)
    wrong = await _decide_request(company, found, decide_transfer_request, transfer_id=key)
    return await _transfer_page(company, key, wrong) if wrong else _decided(company, f"?transfer={key}")


@get("/companies/{customer_id:str}/approvals/changes/{request_id:str}")
async def show_change(company: InCompany, request_id: str) -> PageResponse:
    """Show a pending sensitive change."""
    return await _change_page(company, path_id(request_id, _NO_SUCH))


@post("/companies/{customer_id:str}/approvals/changes/{request_id:str}")
async def decide_change(company: InCompany, request_id: str) -> PageResponse:
    """Approve or deny a sensitive change."""
    key = path_id(request_id, _NO_SUCH)
    found = await company.api.get(get_authorization_request, request_id=key)
    wrong = await _decide_request(company, found, decide_authorization_request, request_id=key)
    if wrong:
        return await _change_page(company, key, wrong)
    found = await company.api.get(get_authorization_request, request_id=key)
    return _decided(company) if found.refused is None else redirect(f"{company.path}/approvals/changes/{key}")


async def _decide_request(company: Company, request: Waiting, operation: Any, **names: UUID) -> FormError | None:  # noqa: ANN401 - an operation
    """Decide according to the form; return the obstacle, None if it is decided."""
    company.require(_NEEDS[type(request)])
    if request.status != "PENDING":
        return Refused("already-reviewed", f"It is decided already: {request.status}.")
    form = company.page.form
    decision = SignedDecision(request.id, form.get("decision", ""), form.get("content_hash", ""))
    if decision.decision not in _DONE:
        return "Choose to approve or to deny."
    wrong = await confirm(company, decision)
    if wrong is not None:
        return wrong
    body = {
        "status": decision.decision,
        "comment": form.get("comment", "").strip() or None,
        "content_hash": decision.content_hash,
    }
    try:
        await company.api.send(operation, body, key=company.page.form_key, **names)
    except (InvalidInput, Refused) as refused:
        return refused
    return None


def _decided(company: Company, query: str = "") -> PageResponse:
    return redirect(f"{company.path}/approvals{query}", done=_DONE[company.page.form["decision"]])


async def _find_decided(company: Company) -> ShownTransferRequest | None:
    """Return the transfer that was decided before the queue is shown, if one was."""
    key = company.page.query.get("transfer", "")
    with suppress(NotFound):
        return await company.api.get(get_transfer_request, transfer_id=UUID(key)) if is_uuid(key) else None
    return None


async def _transfer_page(company: Company, key: UUID, wrong: FormError = "") -> PageResponse:
    found = await company.api.get(get_transfer_request, transfer_id=key)
    around = await read_around(company, found)
    payee = around["payee"]
    bank, now = company.page.server.bank, company.clock.now
    around["effect"] = (
        await preview_batch(bank, company.customer_id, [key], now=now) if may_decide(company, found) else None
    )
    around["look_alikes"] = await find_look_alikes(company, payee) if payee and found.status == "PENDING" else ()
    return await _page(company, "approval_of_transfer", request=found, wrong=wrong, **around)


async def _change_page(company: Company, key: UUID, wrong: FormError = "") -> PageResponse:
    found = await company.api.get(get_authorization_request, request_id=key)
    before = await _read_now(company, found)
    who = f"{before['first_name']} {before['last_name']}" if found.resource_type == "member" and before else ""
    rules = await words_of_rule(company, found, before) if "rule" in found.change else []
    return await _page(
        company,
        "approval_of_change",
        request=found,
        wrong=wrong,
        sentence=": ".join(filter(None, (sentence_of_change(found), who))),
        facts=[*(ChangedField(*each) for each in rules), *facts_of_change(found, before)],
    )


async def _page(company: Company, name: str, *, request: Any, **facts: Any) -> PageResponse:  # noqa: ANN401 - of either kind
    return company.render(
        name,
        request=request,
        may_decide=may_decide(company, request),
        is_own=request.requested_by.member_id == company.own.member_id,
        comment=company.page.form.get("comment", ""),
        factors=await store.get_factors(company.page.pool, company.page.user.user_id),
        **facts,
    )


async def _read_now(company: Company, request: AuthorizationRequest) -> dict[str, Any]:
    """Return the current state of a change's subject, empty if it does not exist yet."""
    found = None
    if request.resource_id is None:
        return {}
    if request.resource_type == "policy":
        return await read_policy(company)
    if request.resource_type == "approval_rule":
        found = await find_rule(company, request.resource_id)
    elif request.resource_type == "member":
        try:
            found = await company.api.get(get_team_member, member_id=request.resource_id)
        except NotFound:
            return {}
    return {} if found is None else msgspec.to_builtins(found)
