"""Reports of a company: requested, listed, downloaded."""

from typing import Any

from litestar import Response, get, post

from billfold.http.raw_request import is_uuid
from billfold.pages.theme import page_headers
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
from billfold.web.company.statements import keys_url
from billfold.web.console.lists import list_choices, names_of_pockets, read_listing
from billfold.web.console.team import InCompany
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
_FILTERS = {"type": "type[]", "status": "status[]"}


@get("/companies/{customer_id:str}/reports")
async def show_reports(company: InCompany) -> PageResponse:
    """Show the requested reports, newest first."""
    listing = await read_listing(company, list_report_requests, _FILTERS, limit=_PAGE)
    return company.render("reports", listing=listing, types=list(ReportType))


@get("/companies/{customer_id:str}/reports/new")
async def show_report_form(company: InCompany) -> PageResponse:
    """Show the kinds of reports, or the form of one."""
    return await _form_page(company, company.page.query.get("type", ""))


@post("/companies/{customer_id:str}/reports/new")
async def request_report(company: InCompany) -> PageResponse:
    """Request a report."""
    company.require("reports.write")
    form = company.page.form
    try:
        wanted = body_of(CreateCustomerReport, form | {"cusips": form.get("cusips", "").upper()})
        made = await company.api.send(create_report_request, wanted, key=company.page.form_key)
    except (InvalidInput, Refused) as wrong:
        return await _form_page(company, form.get("type", ""), at_fields(wrong, {"parameters": "type"}))
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


async def _form_page(company: InCompany, kind: str, wrong: FormError = "") -> PageResponse:
    company.require("reports.write")
    if kind and kind not in set(ReportType):
        raise NotFound("There is no such report.")
    given = company.page.form or {f"pocket.{company.page.query.get('pocket', '')}": "yes"}
    chosen = [each for each in ticked(given, "pocket_ids") if is_uuid(each)]
    return company.render(
        "report_new",
        wrong=wrong,
        kind=kind,
        types=list(ReportType),
        wanted=ReportParameters(kind),
        formats=[str(each) for of, each in RENDERERS if of == kind],
        names=await list_choices(company, chosen, limit=POCKETS_MAX),
        given=given,
    )
