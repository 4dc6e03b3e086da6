"""The approval queue: transfers and sensitive changes that wait for a decision, in one list."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple

from litestar import get

from billfold.approvals.routes.authorization_requests import list_authorization_requests
from billfold.approvals.routes.transfer_requests import list_transfer_requests
from billfold.approvals.schemas import AuthorizationRequest
from billfold.approvals.transfer_request_schemas import ShownTransferRequest
from billfold.platform.money import format_usd
from billfold.web.console.company import Company, InCompany
from billfold.web.console.lists import names_of_pockets
from billfold.web.page_context import PageResponse

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


_SHOWN_MAX = 100
Waiting = ShownTransferRequest | AuthorizationRequest
_NEEDS = {ShownTransferRequest: "transfers.approve", AuthorizationRequest: "authorization_requests.write"}


class View(StrEnum):
    """Part of the queue."""

    MINE = "mine"
    OTHERS = "others"
    ALL = "all"


class Item(NamedTuple):
    """A request as the queue shows it: where its page is, and whether the visitor may decide."""

    path: str
    sentence: str
    amount: str
    requested_by: str
    since: datetime
    progress: str
    blocked: str | None
    is_mine: bool


@get("/companies/{customer_id:str}/approvals")
async def show_approvals(company: InCompany) -> PageResponse:
    """Show the queue, what waits longest first."""
    sent = company.page.query.get("view", "")
    view = View(sent) if sent in set(View) else View.MINE
    transfers = (await company.api.get(list_transfer_requests, status="PENDING", limit=_SHOWN_MAX)).items
    changes = await company.api.get(list_authorization_requests, **{"status[]": "PENDING"}, limit=_SHOWN_MAX)
    names = await names_of_pockets(company, [each.transfer.origin_pocket_id for each in transfers])
    items = [_of_transfer(company, each, names) for each in transfers]
    items += [_of_change(company, each) for each in changes.items]
    items.sort(key=lambda each: each.since)
    shown = [each for each in items if view == View.ALL or each.is_mine == (view == View.MINE)]
    counts = {View.MINE: sum(each.is_mine for each in items), View.ALL: len(items)}
    return company.render(
        "approvals",
        view=view,
        items=shown,
        counts=counts | {View.OTHERS: counts[View.ALL] - counts[View.MINE]},
    )


def may_decide(company: Company, request: Waiting) -> bool:
    """Tell whether the visitor could decide about a request, as far as it says who may."""
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


def _of_transfer(company: Company, request: ShownTransferRequest, names: dict[str, str]) -> Item:
    transfer = request.transfer
    to = transfer.counterparty_name or "another Pocket"
    about = "About " if transfer.amount_type == "FULL_WITHDRAWAL" else ""
    return _item(
        company,
        request,
        path=f"{company.path}/approvals/transfers/{request.id}",
        sentence=f"{names[str(transfer.origin_pocket_id)]} to {to}",
        amount=about + transfer.amount.formatted,
    )


def _of_change(company: Company, request: AuthorizationRequest) -> Item:
    path = f"{company.path}/approvals/changes/{request.id}"
    return _item(company, request, path=path, sentence=sentence_of_change(request), amount="")


def _item(company: Company, request: Waiting, *, path: str, sentence: str, amount: str) -> Item:
    held = sum(each.decision == "APPROVED" and not each.is_void for each in request.reviews)
    person = request.requested_by
    return Item(
        path=path,
        sentence=sentence,
        amount=amount,
        requested_by=f"{person.first_name} {person.last_name}".strip(),
        since=request.time_created,
        progress=f"{held} of {request.required_approvals}",
        blocked=request.blocked_reason,
        is_mine=may_decide(company, request),
    )
