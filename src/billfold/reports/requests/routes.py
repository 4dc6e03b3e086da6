"""Reports through both APIs: request, list, read, download, and add formats."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, TypeAlias
from uuid import UUID

import msgspec

from billfold.accounts.pockets.store import list_ids
from billfold.audit.record import audited_by
from billfold.http.caller import Call, instant_named
from billfold.http.operations import SIGNED, get, post, with_scope
from billfold.http.parameters import ListQuery, Query, Since, Until, page_of, texts_among
from billfold.http.responses import ProblemWithHeaders
from billfold.http.schemas import CursorList
from billfold.identity.partners.caller import Caller
from billfold.ledger.bank import Bank
from billfold.ledger.directory import find_customer
from billfold.oauth.caller import CustomerCaller
from billfold.platform.database.connection import Connection
from billfold.platform.database.paging import KeysetList
from billfold.platform.dates import et_date
from billfold.platform.errors import InvalidInput, NotFound, Refused
from billfold.platform.ids import derive
from billfold.reports import downloads
from billfold.reports.entries.reader import current_entry
from billfold.reports.requests import renderers, schemas, store, types

READS = with_scope("reports.read", "reports")
WRITES = with_scope("reports.write", "reports")
_ALL, _ONE = "/api/v1/report-requests/", "/api/v1/report-requests/{report_request_id}/"
_REFUSES, _REFUSES_DOWNLOAD = ("not-found", "too-many-reports"), ("not-found", "report-not-completed")
_RETRY_AFTER_SECONDS = b"10"
_TYPES, _STATUSES = frozenset(map(str, types.ReportType)), frozenset(map(str, types.ReportRequestStatus))


Listed: TypeAlias = tuple[KeysetList[types.ReportRequest], UUID, UUID | None]


class RequestQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Filter of requests; None does not filter."""

    types: Annotated[list[str] | None, texts_among("type[]", _TYPES)] = None
    statuses: Annotated[list[str] | None, texts_among("status[]", _STATUSES)] = None
    since: Annotated[Since, Query(name="time_created_from")] = None
    until: Annotated[Until, Query(name="time_created_to")] = None


@post(_ALL, WRITES, status=202, refuses=_REFUSES, tag="reports")
async def create_report_request(
    member: CustomerCaller, bank: Bank, data: schemas.CreateCustomerReport
) -> schemas.ShownReportRequest:
    """Create report request.

    The report is made in the background: poll the request until its `status` is COMPLETED, or wait for the event
    `reports.completed`. It shows the state at the time of the request.
    """
    parameters = schemas.parameters_of(data.parameters, None, _as_of(member, bank, data))
    _check_request(member, data, parameters)
    for pocket_id in parameters.pocket_ids or ():
        await member.pocket(bank, pocket_id)
    return await _create_request(member, bank, member.customer_id, data=data, parameters=parameters)


@post(_ALL, SIGNED, name="create_report_request", status=202, refuses=_REFUSES, tag="reports")
async def create_customer_report_request(
    caller: Caller, bank: Bank, data: schemas.CreatePartnerReport
) -> schemas.ShownReportRequest:
    """Create report request.

    For one customer: `customer_id` is required unless Pockets are named. The report is made in the background: poll the
    request until its `status` is COMPLETED, or wait for the event `reports.completed`. It shows the state at the time
    of the request.
    """
    parameters = schemas.parameters_of(data.parameters, data.parameters.customer_id, _as_of(caller, bank, data))
    _check_request(caller, data, parameters)
    owner = await _resolve_owner(caller, bank, parameters)
    return await _create_request(caller, bank, owner, data=data, parameters=parameters)


@get(_ALL, READS, tag="reports")
async def list_report_requests(
    member: CustomerCaller, bank: Bank, wanted: ListQuery, query: RequestQuery
) -> CursorList[schemas.ShownReportRequest]:
    """List report requests, newest first."""
    customer_id = member.customer_id
    return await _page(member, bank, wanted, query, listed=(store.REQUESTS_OF_CUSTOMER, customer_id, customer_id))


@get(_ALL, SIGNED, name="list_report_requests", tag="reports")
async def list_customer_report_requests(
    caller: Caller, bank: Bank, wanted: ListQuery, query: RequestQuery, customer_id: UUID | None = None
) -> CursorList[schemas.ShownReportRequest]:
    """List report requests of all customers, newest first."""
    owner = None if customer_id is None else await caller.owner(bank, customer_id)
    return await _page(caller, bank, wanted, query, listed=(store.REQUESTS_OF_PARTNER, caller.partner_id, owner))


@get(_ONE, SIGNED, READS, tag="reports")
async def get_report_request(caller: Call, bank: Bank, report_request_id: UUID) -> schemas.ShownReportRequest:
    """Get report request."""
    row = await store.get_request(bank.pool, report_request_id, caller.now)
    await _check_owner(caller, bank, row, "There is no such report request.")
    return schemas.render_request(row, await _formats(bank, row))


@get("/api/v1/reports/{report_id}/", SIGNED, tag="reports")
@get("/api/v1/report/{report_id}", READS, tag="reports")
async def get_report(caller: Call, bank: Bank, report_id: UUID) -> schemas.Report:
    """Get report.

    A report exists once its request is COMPLETED, for 90 days.
    """
    row = await _report(caller, bank, report_id)
    return schemas.render_report(row, await _formats(bank, row))


@post("/api/v1/reports/{report_id}/download/", SIGNED, refuses=_REFUSES_DOWNLOAD, tag="reports")
@post("/api/v1/report/{report_id}/download/", READS, refuses=_REFUSES_DOWNLOAD, tag="reports")
async def download_report(
    caller: Call, bank: Bank, report_id: UUID, data: schemas.DownloadReport | None = None
) -> schemas.ReportDownload:
    """Download report.

    Returns a URL that is valid for 10 minutes and needs no token. Fetch it at once, and do not store it.
    """
    row = await _report(caller, bank, report_id)
    chosen = _choose_format(await _formats(bank, row), None if data is None else data.output_format)
    if chosen.file_id is None:
        raise Refused("report-not-completed", f"{chosen.output_format} of this report is {chosen.status}.")
    file = await downloads.get_file(bank.pool, row.customer_id, chosen.file_id)
    details = {"output_format": chosen.output_format}
    async with audited_by(caller, bank, row.customer_id, "report.downloaded", resource_id=report_id, details=details):
        link = downloads.temporary_url(bank.vault, caller.host, file, caller.wall)
    return schemas.ReportDownload(
        url=link.url,
        output_format=chosen.output_format,
        file_name=file.name,
        expires_at=link.expires_at,
        proof=file.proof,
    )


@post("/api/v1/reports/{report_id}/formats/", SIGNED, status=202, refuses=_REFUSES, tag="reports")
async def add_report_formats(caller: Caller, bank: Bank, report_id: UUID, data: schemas.AddFormats) -> schemas.Report:
    """Add report formats.

    The report is made in further formats, for the same instant. Poll the report until each is COMPLETED.
    """
    row = await _report(caller, bank, report_id)
    if wrong := schemas.format_errors(row.type, data.output_formats, renderers.formats_of(row.type, row.parameters)):
        raise InvalidInput(wrong)
    formats = list(dict.fromkeys(data.output_formats))
    details = {"type": row.type, "output_formats": formats}
    async with audited_by(
        caller, bank, row.customer_id, "report.requested", resource_id=report_id, details=details
    ) as act:
        if not await _add_formats(caller, act.conn, row, formats=formats, batch_id=caller.new_resource_id(bank.seed)):
            act.skip()
    return schemas.render_report(row, await _formats(bank, row))


def _check_request(caller: Call, data: schemas.CreateReport, parameters: types.ReportParameters) -> None:
    """Raise InvalidInput with every error in a request."""
    mistakes = [
        *schemas.parameter_errors(data.type, parameters, et_date(parameters.as_of or caller.now)),
        *schemas.format_errors(data.type, data.output_formats, renderers.formats_of(data.type, parameters)),
    ]
    if mistakes:
        raise InvalidInput(mistakes)


async def _resolve_owner(caller: Caller, bank: Bank, parameters: types.ReportParameters) -> UUID:
    """Return the report's owner: the named customer, or the owner of the Pockets. Raises NotFound, InvalidInput."""
    named = parameters.customer_id
    if named is not None:
        named = await caller.owner(bank, named)
    elif parameters.pocket_ids is None:
        raise InvalidInput.at(
            "body", "parameters", "customer_id", msg="is needed unless pocket_ids are given", kind="missing"
        )
    owners = [(await caller.pocket(bank, each, named))[0] for each in parameters.pocket_ids or ()]
    wrong = next((index for index, each in enumerate(owners) if each != owners[0]), None)
    if wrong is not None:
        raise InvalidInput.at(
            "body", "parameters", "pocket_ids", wrong, msg="must be of the same customer as the first one"
        )
    return named or owners[0]


async def _create_request(
    caller: Call, bank: Bank, owner: UUID, *, data: schemas.CreateReport, parameters: types.ReportParameters
) -> schemas.ShownReportRequest:
    _check_cusips(bank, parameters)
    await _require_opened(bank, owner, parameters)
    request_id = caller.new_resource_id(bank.seed)
    after = await _entries_after(caller, bank, owner, parameters)
    through = await current_entry(bank, owner, (parameters.as_of or caller.now) + datetime.resolution)
    if after is not None and after > through:
        raise InvalidInput.at("body", "parameters", "as_of", msg="may not be before what after_report_id shows")
    if data.type == types.ReportType.TRADE_REPORT and parameters.date_type is None:
        parameters = msgspec.structs.replace(parameters, date_type=types.DateType.BOOK_DATE)
    request = types.ReportRequest(
        customer_id=owner,
        report_request_id=request_id,
        partner_id=caller.partner_id,
        report_id=derive(bank.seed, request_id, 0),
        type=data.type,
        parameters=parameters,
        output_formats=tuple(dict.fromkeys(data.output_formats)),
        status=types.ReportRequestStatus.PENDING,
        failure_reason=None,
        requested_by=_name_of(caller),
        entries_after=after,
        entry_no=through,
        created_at=caller.now,
        updated_at=caller.now,
        expires_at=caller.now + types.LIFETIME,
    )
    details = {"type": request.type, "output_formats": request.output_formats}
    async with audited_by(caller, bank, owner, "report.requested", resource_id=request_id, details=details) as act:
        if await store.add_request(act.conn, request):
            await _add_formats(caller, act.conn, request, formats=request.output_formats, batch_id=request_id)
        else:
            act.skip()  # an earlier attempt of the same request was interrupted
    row = await store.get_request(bank.pool, request_id, caller.now)
    return schemas.render_request(row, await _formats(bank, row))


def _as_of(caller: Call, bank: Bank, data: schemas.CreateReport) -> datetime | None:
    """Return the instant as of which a report is requested, if any. Raises InvalidInput."""
    return instant_named(data.parameters.as_of, bank.calendars, caller.now, "body", "parameters", "as_of")


async def _require_opened(bank: Bank, owner: UUID, parameters: types.ReportParameters) -> None:
    """Refuse Pockets that had not been opened at the instant that the report is requested as of. Raises NotFound."""
    if parameters.as_of is None:
        return
    customer = await find_customer(bank.pool, owner)
    if customer is None or customer.opened_at > parameters.as_of:
        raise NotFound("There is no such customer.")
    wanted = parameters.pocket_ids or ()
    if len(await list_ids(bank.pool, owner, list(wanted), parameters.as_of)) < len(wanted):
        raise NotFound("There is no such pocket.")


async def _entries_after(caller: Call, bank: Bank, owner: UUID, parameters: types.ReportParameters) -> int | None:
    """Return the last journal entry of the report from which this one continues. Raises NotFound, InvalidInput."""
    if parameters.after_report_id is None:
        return None
    earlier = await _report(caller, bank, parameters.after_report_id)
    if earlier.customer_id != owner:
        raise NotFound("There is no such report.")
    if mistakes := list(schemas.continuation_errors(parameters, earlier)):
        raise InvalidInput(mistakes)
    return await types.last_entry_shown(bank, earlier)


def _check_cusips(bank: Bank, parameters: types.ReportParameters) -> None:
    """Raise InvalidInput for an unknown CUSIP."""
    for index, cusip in enumerate(parameters.cusips or ()):
        try:
            bank.market.bill(cusip)
        except NotFound:
            raise InvalidInput.at("body", "parameters", "cusips", index, msg="is not the CUSIP of a bill") from None


async def _add_formats(
    caller: Call,
    conn: Connection,
    request: types.ReportRequest,
    *,
    formats: Sequence[types.ReportFormat],
    batch_id: UUID,
) -> int:
    """Schedule formats; return how many are to be made. Raises `too-many-reports`."""
    tenant_id = caller.only_customer_id or caller.partner_id
    batch = {"batch_id": batch_id, "tenant_id": tenant_id}
    added = await store.add_formats(conn, request, formats, **batch, wall=caller.wall)
    if await store.count_unfinished(conn, request.customer_id) > types.UNFINISHED_MAX:
        detail = f"More than {types.UNFINISHED_MAX} formats of reports of this customer would wait."
        raise ProblemWithHeaders("too-many-reports", detail, (b"retry-after", _RETRY_AFTER_SECONDS))
    return added


async def _page(
    caller: Call, bank: Bank, wanted: ListQuery, query: RequestQuery, *, listed: Listed
) -> CursorList[schemas.ShownReportRequest]:
    requests, owner, customer_id = listed
    values = (owner, customer_id, caller.now, *msgspec.structs.astuple(query))
    scope = f"report-requests:{owner}:{customer_id}"
    page = await wanted.read(bank, requests, *values, scope=scope, filters=query)
    formats = await store.list_formats(bank.pool, [row.report_id for row in page.items])
    return page_of(page, [schemas.render_request(row, formats[row.report_id]) for row in page.items])


async def _report(caller: Call, bank: Bank, report_id: UUID) -> types.ReportRequest:
    row = await store.get_report(bank.pool, report_id, caller.now)
    await _check_owner(caller, bank, row, "There is no such report.")
    return row


async def _check_owner(caller: Call, bank: Bank, row: types.ReportRequest, detail: str) -> None:
    """Raise NotFound unless the report belongs to the token's customer, or to one of the partner's."""
    try:
        await caller.owned(bank, "customer", row.customer_id)
    except NotFound:
        raise NotFound(detail) from None


async def _formats(bank: Bank, row: types.ReportRequest) -> list[types.ReportedFormat]:
    return (await store.list_formats(bank.pool, [row.report_id]))[row.report_id]


def _choose_format(formats: Sequence[types.ReportedFormat], wanted: types.ReportFormat | None) -> types.ReportedFormat:
    """Return the format to download, or the only one if none is named. Raises InvalidInput."""
    if wanted is None and len(formats) == 1:
        return formats[0]
    found = next((each for each in formats if each.output_format == wanted), None)
    if found is None:
        names = ", ".join(each.output_format for each in formats)
        kind = "missing" if wanted is None else "enum"
        raise InvalidInput.at("body", "output_format", msg=f"must be one of {names}", kind=kind)
    return found


def _name_of(caller: Call) -> str:
    if isinstance(caller, CustomerCaller):
        return str(caller.access.member_id or caller.access.client_id)
    assert isinstance(caller, Caller)
    return str(caller.user_id)
