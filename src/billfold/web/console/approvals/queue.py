"""What waits for a decision: the visitor's own, that of others, all. Transfers and sensitive changes in one list."""

from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from litestar import get

from billfold.approvals.routes import list_authorization_requests
from billfold.approvals.schemas import AuthorizationRequest
from billfold.approvals.transfer_request_schemas import ShownTransferRequest
from billfold.approvals.transfer_requests_routes import list_transfer_requests
from billfold.web.console.approvals.sentences import sentence_of_change
from billfold.web.console.company import Company, InCompany
from billfold.web.console.listing import names_of_pockets
from billfold.web.page_context import PageResponse

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
