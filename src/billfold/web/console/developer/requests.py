"""The request log: errors in groups, requests by filters, and one of them."""

from __future__ import annotations

from datetime import timedelta

from litestar import get

from billfold.web.console.listing import read_listing
from billfold.web.console.team import InTeam, paths_of
from billfold.web.page_context import PageResponse
from billfold.request_log.routes import STATUS_CLASSES, get_logged_request, list_logged_requests, list_request_errors

_PATH = "/developer/requests"
_PAGE = 30
_GROUPS = 8
_GROUPED = timedelta(hours=24)
_FILTERS = {
    "status": "status",
    "operation": "operation",
    "error": "error_code",
    "from": "timestamp_from",
    "to": "timestamp_to",
}


@get(paths_of(_PATH))
async def show_requests(team: InTeam) -> PageResponse:
    """Show the errors of the last day in groups, and requests, the newest first."""
    listing = await read_listing(team, list_logged_requests, _FILTERS, limit=_PAGE)
    since = (team.page.now - _GROUPED).isoformat()
    groups = await team.api.get(list_request_errors, timestamp_from=since, limit=_GROUPS)
    return team.render(
        "developer_requests",
        wrong=listing.wrong,
        listing=listing,
        groups=[] if listing.filters else groups.items,
        classes=[(each, each) for each in STATUS_CLASSES],
    )


@get(paths_of(f"{_PATH}/{{trace_id:str}}"))
async def show_request(team: InTeam, trace_id: str) -> PageResponse:
    """Show one request."""
    return team.render("developer_request", request=await team.api.get(get_logged_request, trace_id=trace_id))
