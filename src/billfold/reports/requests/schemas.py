"""Requests for reports, reports and downloads as returned by both APIs, and the parameters required by each type."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Final, Literal, TypeAlias
from uuid import UUID

import msgspec
from msgspec import to_builtins

from billfold.http.schemas import BankTime, WallTime
from billfold.platform.errors import FieldError
from billfold.reports.requests import types

_CUSIP = r"\A[0-9A-Z]{9}\Z"
_FORMATS_MAX = 20
Formats = Annotated[list[types.ReportFormat], msgspec.Meta(min_length=1, max_length=_FORMATS_MAX)]
Cusip = Annotated[str, msgspec.Meta(pattern=_CUSIP)]
Percent = Annotated[int, msgspec.Meta(ge=0, le=100, description="How much of it is made, in percent.")]


class CustomerReportParameters(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """The parameters of the report, which depend on its type; days are Eastern."""

    pocket_ids: Annotated[list[UUID], msgspec.Meta(min_length=1, max_length=types.POCKETS_MAX)] | None = None
    date: (
        Annotated[types.Day, msgspec.Meta(description="Of statements and position summaries. Not in the future.")]
        | None
    ) = None
    date_from: types.Day | None = None
    date_to: Annotated[types.Day, msgspec.Meta(description="At most day 31 of the range, itself included.")] | None = (
        None
    )
    date_type: types.DateType | None = None
    cusips: Annotated[list[Cusip], msgspec.Meta(min_length=1, max_length=types.POCKETS_MAX)] | None = None
    after_report_id: (
        Annotated[
            UUID,
            msgspec.Meta(
                description="Of a CAMT054 of bank accounts: only what was booked after the entries of this earlier one."
            ),
        ]
        | None
    ) = None
    as_of: (
        Annotated[
            str,
            msgspec.Meta(
                description="Shows the books as they were at this date-time with its offset, or at the close of this"
                " business day, instead of now."
            ),
        ]
        | None
    ) = None


class PartnerReportParameters(CustomerReportParameters, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """The same, with the report's owner, which is required unless Pockets are named."""

    customer_id: UUID | None = None


class CreateCustomerReport(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A report to be made."""

    type: types.ReportType
    parameters: CustomerReportParameters
    output_formats: Formats


class CreatePartnerReport(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A report to be made of a customer."""

    type: types.ReportType
    parameters: PartnerReportParameters
    output_formats: Formats


CreateReport: TypeAlias = CreateCustomerReport | CreatePartnerReport


class AddFormats(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Additional formats of a report. Those that it already has are ignored."""

    output_formats: Formats


class DownloadReport(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The format to download; required if the report has several."""

    output_format: types.ReportFormat | None = None


class ShownReportRequest(msgspec.Struct, kw_only=True):
    """A request for a report. `report_id` is null until the report is completed."""

    id: UUID
    customer_id: UUID
    type: types.ReportType
    parameters: PartnerReportParameters
    output_formats: list[types.ReportFormat]
    status: types.ReportRequestStatus
    progress: Percent
    report_id: UUID | None
    failure_reason: types.FailureReason | None
    requested_by: Annotated[str, msgspec.Meta(description="A member, an OAuth client or a user of the partner.")]
    time_created: BankTime
    updated_at: BankTime
    object_type: Literal["ReportRequest"] = "ReportRequest"


class ShownFormat(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One format of a report. `size_bytes` is omitted until it is completed."""

    output_format: types.ReportFormat
    status: types.ReportRequestStatus
    content_type: str
    size_bytes: int | msgspec.UnsetType = msgspec.UNSET
    failure_reason: types.FailureReason | None = None


class Report(msgspec.Struct, kw_only=True):
    """A report and the formats in which it can be downloaded until it expires."""

    id: UUID
    report_request_id: UUID
    customer_id: UUID
    type: types.ReportType
    parameters: PartnerReportParameters
    formats: list[ShownFormat]
    time_created: BankTime
    expires_at: Annotated[datetime, msgspec.Meta(description="90 days after it was requested, on the bank's clock.")]
    object_type: Literal["Report"] = "Report"


class ReportDownload(msgspec.Struct, kw_only=True):
    """A URL to download a file without a token, for 10 minutes."""

    url: Annotated[str, msgspec.Meta(max_length=2083)]
    output_format: types.ReportFormat
    file_name: str
    expires_at: WallTime
    proof: Annotated[
        str | None,
        msgspec.Meta(
            description="The bank's signature of a file that has no place for it: saved next to it, under its name and"
            " `.proof`, it is checked by `billfold verify`. PDF and camt files hold theirs."
        ),
    ]
    object_type: Literal["ReportDownload"] = "ReportDownload"


def parameters_of(data: CustomerReportParameters, owner: UUID | None, as_of: datetime | None) -> types.ReportParameters:
    """Return parameters as stored; each Pocket and CUSIP once."""
    given = {
        name: [*dict.fromkeys(each)] if isinstance(each, list) else each for name, each in to_builtins(data).items()
    }
    return msgspec.convert(given | {"customer_id": owner, "as_of": as_of}, types.ReportParameters)


def render_request(row: types.ReportRequest, formats: Sequence[types.ReportedFormat]) -> ShownReportRequest:
    """Return a request for display."""
    is_completed = row.status == types.ReportRequestStatus.COMPLETED
    first = [each.progress for each in formats if each.output_format in row.output_formats]
    return ShownReportRequest(
        id=row.report_request_id,
        customer_id=row.customer_id,
        type=row.type,
        parameters=_shown_parameters(row),
        output_formats=list(row.output_formats),
        status=row.status,
        progress=sum(first) // max(1, len(first)),
        report_id=row.report_id if is_completed else None,
        failure_reason=row.failure_reason,
        requested_by=row.requested_by,
        time_created=row.created_at,
        updated_at=row.updated_at,
    )


def render_report(row: types.ReportRequest, formats: Sequence[types.ReportedFormat]) -> Report:
    """Return a report for display."""
    return Report(
        id=row.report_id,
        report_request_id=row.report_request_id,
        customer_id=row.customer_id,
        type=row.type,
        parameters=_shown_parameters(row),
        formats=[
            ShownFormat(
                output_format=each.output_format,
                status=each.status,
                content_type=types.FORMATS[each.output_format].media_type,
                size_bytes=msgspec.UNSET if each.size_bytes is None else each.size_bytes,
                failure_reason=each.failure_reason,
            )
            for each in formats
        ],
        time_created=row.created_at,
        expires_at=row.expires_at,
    )


def _shown_parameters(row: types.ReportRequest) -> PartnerReportParameters:
    return msgspec.convert(to_builtins(row.parameters), PartnerReportParameters)


_BODY: Final = ("body", "parameters")
_RANGE: Final = frozenset({"date_from", "date_to"})
REQUIRED: Final[Mapping[types.ReportType, frozenset[str]]] = {
    types.ReportType.BANK_STATEMENT_REPORT: frozenset({"pocket_ids", "date"}),
    types.ReportType.BROKERAGE_STATEMENT_REPORT: frozenset({"pocket_ids", "date"}),
    types.ReportType.TRADE_REPORT: _RANGE,
    types.ReportType.SECURITY_PRICE_REPORT: _RANGE,
    types.ReportType.POSITION_SUMMARY_REPORT: frozenset({"date"}),
}
OPTIONAL: Final[Mapping[types.ReportType, frozenset[str]]] = {
    types.ReportType.BANK_STATEMENT_REPORT: frozenset({"after_report_id"}),
    types.ReportType.BROKERAGE_STATEMENT_REPORT: frozenset(),
    types.ReportType.TRADE_REPORT: frozenset({"date_type", "pocket_ids"}),
    types.ReportType.SECURITY_PRICE_REPORT: frozenset({"cusips"}),
    types.ReportType.POSITION_SUMMARY_REPORT: frozenset({"pocket_ids"}),
}
_DAYS: Final = ("date", "date_from", "date_to")


def parameter_errors(type_: types.ReportType, parameters: types.ReportParameters, today: types.Day) -> list[FieldError]:
    """Return every error in the parameters of a report. `today` is Eastern, the day of `as_of` if given."""
    given = {name for name in parameters.__struct_fields__ if getattr(parameters, name) is not None}
    wrong = list(_misplaced(type_, given - {"customer_id", "as_of"}))
    called = "today in New York" if parameters.as_of is None else "the day of as_of"
    wrong += [
        FieldError((*_BODY, name), f"may not be after {today}, which is {called}", "value_error")
        for name in _DAYS
        if (day := getattr(parameters, name)) is not None and day > today
    ]
    return [*wrong, *_range_errors(parameters.date_from, parameters.date_to)]


def format_errors(
    type_: types.ReportType, formats: Sequence[types.ReportFormat], valid: Collection[types.ReportFormat]
) -> list[FieldError]:
    """Return an error for each format that is not available for this type of report."""
    return [
        FieldError(("body", "output_formats", index), f"must be one of {', '.join(valid)} for a {type_}", "enum")
        for index, each in enumerate(formats)
        if each not in valid
    ]


def continuation_errors(parameters: types.ReportParameters, earlier: types.ReportRequest) -> Iterator[FieldError]:
    """Yield every mistake in a notification that continues an earlier one."""
    if earlier.type != types.ReportType.BANK_STATEMENT_REPORT:
        yield FieldError(
            (*_BODY, "after_report_id"), f"must be a {types.ReportType.BANK_STATEMENT_REPORT}", "value_error"
        )
    last_day = earlier.parameters.date
    if last_day is not None and parameters.date is not None and parameters.date < last_day:
        yield FieldError((*_BODY, "date"), f"may not be before {last_day}, the day of after_report_id", "value_error")
    shown = earlier.parameters.pocket_ids or ()
    for index, pocket_id in enumerate(parameters.pocket_ids or ()):
        if pocket_id not in shown:
            yield FieldError((*_BODY, "pocket_ids", index), "must be one of after_report_id", "value_error")


def _misplaced(type_: types.ReportType, given: set[str]) -> Iterator[FieldError]:
    required = REQUIRED[type_]
    for name in sorted(given - required - OPTIONAL[type_]):
        yield FieldError((*_BODY, name), f"is not a parameter of a {type_}", "extra_forbidden")
    for name in sorted(required - given):
        yield FieldError((*_BODY, name), f"is needed for a {type_}", "missing")


def _range_errors(first: types.Day | None, last: types.Day | None) -> Iterator[FieldError]:
    if first is None or last is None:
        return
    if last < first:
        yield FieldError((*_BODY, "date_to"), "must not be before date_from", "value_error")
    elif (last - first).days >= types.RANGE_DAYS_MAX:
        yield FieldError(
            (*_BODY, "date_to"), f"may be at most day {types.RANGE_DAYS_MAX} from date_from on", "value_error"
        )
