"""Transfer requests of a company: listed by the filters of the address, one of them, cancelled."""

from typing import Any
from uuid import UUID

from litestar import get, post

from billfold.accounts.counterparties.routes import get_counterparty
from billfold.accounts.pockets.routes import get_pocket
from billfold.approvals.routes import get_approval_rule
from billfold.approvals.transfer_request_schemas import ShownTransferRequest
from billfold.approvals.transfer_requests_routes import (
    STATUSES,
    TYPES,
    cancel_transfer_request,
    get_transfer_request,
    list_transfer_requests,
)
from billfold.platform.errors import NotFound, Refused
from billfold.web.console.company import Company, InCompany
from billfold.web.console.listing import list_choices, read_listing
from billfold.web.page_context import Mistake, PageResponse, path_id, redirect

_PAGE = 30
_FILTERS = {
    "status": "status[]",
    "type": "type",
    "pocket": "pocket[]",
    "from": "time_created_from",
    "to": "time_created_to",
}
_NO_SUCH = "There is no such transfer request."


@get("/companies/{customer_id:str}/transfer-requests")
async def show_transfer_requests(company: InCompany) -> PageResponse:
    """Show transfer requests, the newest first."""
    listing = await read_listing(company, list_transfer_requests, _FILTERS, limit=_PAGE)
    return company.render(
        "transfer_requests",
        wrong=listing.wrong,
        listing=listing,
        names=await list_choices(company, (), listing.filters.get("pocket", "")),
        statuses=sorted(STATUSES),
        types=sorted(TYPES),
    )


@get("/companies/{customer_id:str}/transfer-requests/{request_id:str}")
async def show_transfer_request(company: InCompany, request_id: str) -> PageResponse:
    """Show one request with all that has become of it."""
    return await _page(company, path_id(request_id, _NO_SUCH))


@post("/companies/{customer_id:str}/transfer-requests/{request_id:str}/cancel")
async def cancel(company: InCompany, request_id: str) -> PageResponse:
    """Cancel a request that waits."""
    key = path_id(request_id, _NO_SUCH)
    try:
        await company.api.send(cancel_transfer_request, key=company.page.form_key, transfer_id=key)
    except Refused as wrong:
        return await _page(company, key, wrong)
    return redirect(f"{company.path}/transfer-requests/{key}", done="transfer-cancelled")


async def _page(company: Company, key: UUID, wrong: Mistake = "") -> PageResponse:
    found = await company.api.get(get_transfer_request, transfer_id=key)
    return company.render(
        "transfer_request",
        wrong=wrong,
        request=found,
        may_cancel=found.status == "PENDING"
        and company.may("transfers.write")
        and (found.requested_by.member_id == company.own.member_id or company.own.role == "ADMIN"),
        **await read_around(company, found),
    )


async def read_around(company: Company, request: ShownTransferRequest) -> dict[str, Any]:
    """Return what a request names: Pockets, the counterparty as it is now, and the rule that applies."""
    transfer = request.transfer
    details = transfer.details or {}
    to = details.get("destination_pocket_id")
    payee = transfer.counterparty_id or details.get("destination_counterparty_id")
    return {
        "origin": await company.api.get(get_pocket, pocket_id=transfer.origin_pocket_id, omit="PORTFOLIO"),
        "to_pocket": await company.api.get(get_pocket, pocket_id=to, omit="PORTFOLIO") if to else None,
        "payee": await company.api.get(get_counterparty, counterparty_id=payee) if payee else None,
        "rule": await find_rule(company, request.approval_rule_id),
    }


async def find_rule(company: Company, rule_id: UUID | None) -> Any:  # noqa: ANN401 - the rule as the API shows it
    """Return an approval rule; None for the default, and for one that is removed."""
    if rule_id is None:
        return None
    try:
        return await company.api.get(get_approval_rule, rule_id=rule_id)
    except NotFound:
        return None
