"""What a request for a report must say, by its type: which parameters, which days, which formats. Pure."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from billfold.platform.errors import FieldError
from billfold.reports.requests.types import (
    RANGE_DAYS_MAX,
    Day,
    ReportFormat,
    ReportParameters,
    ReportRequest,
    ReportType,
)

_BODY: Final = ("body", "parameters")
_RANGE: Final = frozenset({"date_from", "date_to"})
REQUIRED: Final[Mapping[ReportType, frozenset[str]]] = MappingProxyType(
    {
        ReportType.BANK_STATEMENT_REPORT: frozenset({"pocket_ids", "date"}),
        ReportType.BROKERAGE_STATEMENT_REPORT: frozenset({"pocket_ids", "date"}),
        ReportType.TRADE_REPORT: _RANGE,
        ReportType.SECURITY_PRICE_REPORT: _RANGE,
        ReportType.POSITION_SUMMARY_REPORT: frozenset({"date"}),
    }
)
OPTIONAL: Final[Mapping[ReportType, frozenset[str]]] = MappingProxyType(
    {
        ReportType.BANK_STATEMENT_REPORT: frozenset({"after_report_id"}),
        ReportType.BROKERAGE_STATEMENT_REPORT: frozenset(),
        ReportType.TRADE_REPORT: frozenset({"date_type", "pocket_ids"}),
        ReportType.SECURITY_PRICE_REPORT: frozenset({"cusips"}),
        ReportType.POSITION_SUMMARY_REPORT: frozenset({"pocket_ids"}),
    }
)
_DAYS: Final = ("date", "date_from", "date_to")


def parameter_errors(type_: ReportType, parameters: ReportParameters, today: Day) -> list[FieldError]:
    """Return every mistake in the parameters of a report. `today` is Eastern."""
    given = {name for name in parameters.__struct_fields__ if getattr(parameters, name) is not None}
    wrong = list(_misplaced(type_, given - {"customer_id"}))
    wrong += [
        FieldError((*_BODY, name), f"may not be after {today}, which is today in New York", "value_error")
        for name in _DAYS
        if (day := getattr(parameters, name)) is not None and day > today
    ]
    return [*wrong, *_range_errors(parameters.date_from, parameters.date_to)]


def format_errors(
    type_: ReportType, formats: Sequence[ReportFormat], valid: Collection[ReportFormat]
) -> list[FieldError]:
    """Return a mistake for each format in which a report of this type is not made."""
    return [
        FieldError(("body", "output_formats", index), f"must be one of {', '.join(valid)} for a {type_}", "enum")
        for index, each in enumerate(formats)
        if each not in valid
    ]


def continuation_errors(parameters: ReportParameters, earlier: ReportRequest) -> Iterator[FieldError]:
    """Yield every mistake in a notification that goes on where an earlier one ended."""
    if earlier.type != ReportType.BANK_STATEMENT_REPORT:
        yield FieldError((*_BODY, "after_report_id"), f"must be a {ReportType.BANK_STATEMENT_REPORT}", "value_error")
    last_day = earlier.parameters.date
    if last_day is not None and parameters.date is not None and parameters.date < last_day:
        yield FieldError((*_BODY, "date"), f"may not be before {last_day}, the day of after_report_id", "value_error")
    shown = earlier.parameters.pocket_ids or ()
    for index, pocket_id in enumerate(parameters.pocket_ids or ()):
        if pocket_id not in shown:
            yield FieldError((*_BODY, "pocket_ids", index), "must be one of after_report_id", "value_error")


def _misplaced(type_: ReportType, given: set[str]) -> Iterator[FieldError]:
    required = REQUIRED[type_]
    for name in sorted(given - required - OPTIONAL[type_]):
        yield FieldError((*_BODY, name), f"is not a parameter of a {type_}", "extra_forbidden")
    for name in sorted(required - given):
        yield FieldError((*_BODY, name), f"is needed for a {type_}", "missing")


def _range_errors(first: Day | None, last: Day | None) -> Iterator[FieldError]:
    if first is None or last is None:
        return
    if last < first:
        yield FieldError((*_BODY, "date_to"), "must not be before date_from", "value_error")
    elif (last - first).days >= RANGE_DAYS_MAX:
        yield FieldError((*_BODY, "date_to"), f"may be at most day {RANGE_DAYS_MAX} from date_from on", "value_error")
