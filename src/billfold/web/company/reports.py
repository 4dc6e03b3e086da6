"""Reports of a company: requested, listed, downloaded."""

from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from typing import Any

from litestar import Response, get, post

from billfold.http.raw_request import is_uuid
from billfold.pages.theme import page_headers
from billfold.platform.database.paging import LIMIT_MAX
from billfold.platform.dates import et_date
from billfold.platform.errors import InvalidInput, NotFound, Refused
from billfold.reports.requests.renderers import RENDERERS
from billfold.reports.requests.routes import (
    create_report_request,
    download_report,
    get_report,
    get_report_request,
    list_report_requests,
)
from billfold.reports.requests.schemas import OPTIONAL, REQUIRED, CreateCustomerReport
from billfold.reports.requests.types import POCKETS_MAX, ReportType
from billfold.reports.statements.routes import list_customer_statements
from billfold.web.company.statements import keys_url
from billfold.web.console.lists import list_choices, names_of_pockets, read_listing
from billfold.web.console.team import Company, InCompany
from billfold.web.forms import at_fields, body_of, ticked
from billfold.web.page_context import FormError, PageResponse, path_id, redirect


class ReportParameters:
    """The parameters of a report type."""

    def __init__(self, kind: str) -> None:
        self.required = REQUIRED[ReportType(kind)] if kind else frozenset()
        self.optional = OPTIONAL[ReportType(kind)] if kind else frozenset()

    def __contains__(self, name: str) -> bool:
        return name in self.required or name in self.optional


_PAGE = 30
_SCOPE = "reports.write"
_KINDS = [str(each) for each in ReportType]
_USUAL = ("XLSX", "PDF", "CSV")
"""Formats that people open, the best first."""
_FILTERS = {"type": "type[]", "status": "status[]"}


@get("/companies/{customer_id:str}/reports")
async def show_reports(company: InCompany) -> PageResponse:
    """Show the form of a report, the reports that were made, newest first, and the latest statements."""
    return await _page(company, _KINDS[0], filters=_FILTERS)


@get("/companies/{customer_id:str}/reports/new")
async def show_report_form(company: InCompany) -> PageResponse:
    """Show the same, with the form of another kind of report."""
    company.require(_SCOPE)
    return await _page(company, company.page.query.get("type", _KINDS[0]))


@post("/companies/{customer_id:str}/reports/new")
async def request_report(company: InCompany) -> PageResponse:
    """Request a report."""
    company.require(_SCOPE)
    form = company.page.form
    try:
        wanted = body_of(CreateCustomerReport, form | {"cusips": form.get("cusips", "").upper()})
        made = await company.api.send(create_report_request, wanted, key=company.page.form_key)
    except (InvalidInput, Refused) as wrong:
        return await _page(company, form.get("type", ""), at_fields(wrong, {"parameters": "type"}))
    return redirect(f"{company.path}/reports/{made.id}", done="report-requested")


@get("/companies/{customer_id:str}/reports/{request_id:str}")
async def show_report(company: InCompany, request_id: str) -> PageResponse:
    """Show a report: its parameters, and its files once they are created."""
    request, report = await _read(company, request_id)
    names = await names_of_pockets(company, request.parameters.pocket_ids or ())
    return company.render("report", request=request, report=report, names=names, keys_url=keys_url(company))


@get("/companies/{customer_id:str}/reports/{request_id:str}/{output_format:str}")
async def download_file(company: InCompany, request_id: str, output_format: str) -> PageResponse:
    """Redirect to the file of a format, or send the separate proof."""
    _, report = await _read(company, request_id)
    if report is None or output_format not in {str(each.output_format) for each in report.formats}:
        raise NotFound("The report has no such file.")
    found = await company.api.send(download_report, {"output_format": output_format}, report_id=report.id)
    if "proof" not in company.page.query:
        return redirect(found.url)
    if found.proof is None:
        raise NotFound("The file contains its proof.")
    headers = {"content-disposition": f'attachment; filename="{found.file_name}.proof"', **page_headers()}
    return Response(found.proof, media_type="text/plain", headers=headers)


async def _read(company: InCompany, request_id: str) -> tuple[Any, Any]:
    key = path_id(request_id, "There is no such report.")
    request = await company.api.get(get_report_request, report_request_id=key)
    if request.report_id is None:
        return request, None
    return request, await company.api.get(get_report, report_id=request.report_id)


async def _page(company: Company, kind: str, wrong: FormError = "", *, filters: Mapping[str, str] = {}) -> PageResponse:
    if kind not in _KINDS:
        raise NotFound("There is no such report.")
    listing = await read_listing(company, list_report_requests, filters, limit=_PAGE)
    wanted, formats = ReportParameters(kind), [str(each) for of, each in RENDERERS if of == kind]
    names = await list_choices(company, [], limit=POCKETS_MAX)
    presets = _presets(et_date(company.clock.now), wanted)
    given = company.page.form or _defaults(company.page.query, wanted, names, formats) | presets[0][1]
    chosen = [each for each in ticked(given, "pocket_ids") if is_uuid(each)]
    return company.render(
        "reports",
        listing=listing._replace(wrong=wrong or listing.wrong),
        filters_wrong=listing.wrong,
        months=await _months(company),
        kind=kind,
        kinds=_KINDS,
        wanted=wanted,
        formats=formats,
        presets=presets,
        names=names | await names_of_pockets(company, set(chosen) - names.keys()),
        given=given,
    )


async def _months(company: Company) -> list[str]:
    """Return the periods of the newest statements."""
    if not company.may("pockets.read"):
        return []
    listed = await company.api.get(list_customer_statements, limit=LIMIT_MAX)
    return list(dict.fromkeys(each.key for each in listed.items))


def _presets(today: date, wanted: ReportParameters) -> list[tuple[str, dict[str, str]]]:
    """Return the days that are often wanted of a report, as its fields; the first is the default."""
    yesterday, month_end = today - timedelta(days=1), today.replace(day=1) - timedelta(days=1)
    if "date" in wanted:
        return [("Yesterday", {"date": str(yesterday)}), ("End of last month", {"date": str(month_end)})]
    spans = (
        ("Last month", month_end.replace(day=1), month_end),
        ("This month", today.replace(day=1), today),
        ("Last 7 days", today - timedelta(days=6), today),
    )
    return [(label, {"date_from": str(first), "date_to": str(last)}) for label, first, last in spans]


def _defaults(
    query: Mapping[str, str], wanted: ReportParameters, names: Mapping[str, str], formats: Sequence[str]
) -> dict[str, str]:
    """Return a form as it is first shown: the Pocket of the query, or all that must be named, and one format."""
    pockets = [query["pocket"]] if "pocket" in query else names if "pocket_ids" in wanted.required else ()
    usual = next((each for each in _USUAL if each in formats), formats[0])
    return {**{f"pocket.{each}": "yes" for each in pockets}, f"format.{usual}": "yes"}
