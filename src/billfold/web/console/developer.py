"""The first page for engineers, and the request log: errors in groups, requests by filters, and one of them."""

from datetime import timedelta

from litestar import get

from billfold.events.webhooks.routes import list_subscriptions
from billfold.events.webhooks.store import summarize_deliveries
from billfold.request_log.routes import STATUS_CLASSES, get_logged_request, list_logged_requests, list_request_errors
from billfold.team.routes import get_service_user, get_team, list_service_user_keys
from billfold.web.console.lists import read_listing
from billfold.web.console.partner import Partner
from billfold.web.console.team import ApiTeam, Company, InTeam, paths_of
from billfold.web.console.webhooks import DELIVERED_WITHIN
from billfold.web.page_context import PageResponse

_SHOWN = 50
_PROGRAMS = 10


@get(paths_of("/developer"))
async def show_developer(team: InTeam) -> PageResponse:
    """Show the developer page."""
    subscriptions = (await team.api.get(list_subscriptions, limit=_SHOWN)).items
    since = team.page.now - DELIVERED_WITHIN
    return team.render(
        "developer",
        addresses=_addresses(team),
        subscriptions=subscriptions,
        summaries=await summarize_deliveries(team.page.pool, [each.id for each in subscriptions], since),
        has_programs=isinstance(team, Company),
        programs=await _programs(team) if isinstance(team, Company) and team.may("team.read") else [],
    )


def _addresses(team: ApiTeam) -> dict[str, str]:
    settings = team.page.server.bank.settings
    if isinstance(team, Partner):
        base = f"https://{team.host}"
        return {"Partner API": base, "Reference": f"{base}/docs/", "Partner ID": str(team.row.partner_id)}
    return {
        "Customer API": settings.customer_origin,
        "Reference": f"{settings.customer_origin}/docs/",
        "Issuer of tokens": settings.auth_origin,
        "Customer ID": str(team.customer_id),
    }


async def _programs(company: Company) -> list[tuple[object, object]]:
    """Return the service users of the team, each with its keys."""
    team = await company.api.get(get_team)
    members = [each for group in team.groups for each in group.members if each.is_service_user]
    return [
        (
            await company.api.get(get_service_user, member_id=each.member_id),
            (await company.api.get(list_service_user_keys, member_id=each.member_id)).items,
        )
        for each in members[:_PROGRAMS]
    ]


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
        listing=listing,
        groups=[] if listing.filters else groups.items,
        classes=[(each, each) for each in STATUS_CLASSES],
    )


@get(paths_of(f"{_PATH}/{{trace_id:str}}"))
async def show_request(team: InTeam, trace_id: str) -> PageResponse:
    """Show one request."""
    return team.render("developer_request", request=await team.api.get(get_logged_request, trace_id=trace_id))
