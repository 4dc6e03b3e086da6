"""The audit log of a company, filtered by the query, and as a CSV file."""

import msgspec
from litestar import get

from billfold.platform.dates import et_date
from billfold.team.audit_routes import get_audit_logs_csv, list_audit_logs, list_member_audit_logs
from billfold.team.routes import get_team
from billfold.web.console.audit_sentences import sentence_of
from billfold.web.console.find import list_named
from billfold.web.console.lists import operation_filters, presets_of, read_listing
from billfold.web.console.team import Company, InCompany
from billfold.web.page_context import PageResponse, path_id

_PAGE = 30
_SPAN = {"from": "timestamp_from", "to": "timestamp_to"}


@get("/companies/{customer_id:str}/audit-log")
async def show_audit_log(company: InCompany) -> PageResponse:
    """Show the log, newest first."""
    member = company.page.query.get("member", "").strip()
    operation, names = list_audit_logs, _SPAN
    if member:
        path_id(member, "There is no such member.")
        operation, names = list_member_audit_logs, {**_SPAN, "member": "member_id"}
    listing = await read_listing(company, operation, names, limit=_PAGE)
    entries = listing.rows.items
    named = {each.path.replace("#", "/").rpartition("/")[2]: each for each in await list_named(company)}
    return company.render(
        "audit_log",
        listing=listing._replace(presets=presets_of(et_date(company.page.now))),
        members=await _members(company),
        sentences={each.id: sentence_of(each.action, each.resource_id, each.details, named) for each in entries},
        details={each.id: _lines(each.details) for each in entries},
    )


@get("/companies/{customer_id:str}/audit-log.csv")
async def download_audit_log(company: InCompany) -> PageResponse:
    """Download the filtered entries."""
    names = {**_SPAN, "member": "member_id"}
    return await company.api.download(get_audit_logs_csv, **operation_filters(company.page.query, names))


async def _members(company: Company) -> dict[str, str]:
    """Return the names of all current and former members of the team, by their ids."""
    team = await company.api.get(get_team)
    return {
        str(each.member_id): f"{each.first_name} {each.last_name}".strip()
        for group in team.groups
        for each in group.members
    }


def _lines(details: dict[str, object]) -> str:
    return msgspec.json.format(msgspec.json.encode(details)).decode() if details else ""
