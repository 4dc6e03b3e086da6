"""Which renderer writes which type of report in which format, and what its file is called."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from billfold.reports.formats.table import WRITERS
from billfold.reports.requests.renderers.positions import write_positions_csv, write_positions_pdf
from billfold.reports.requests.renderers.prices import write_prices
from billfold.reports.requests.renderers.statements import in_format
from billfold.reports.requests.renderers.trades import write_trades
from billfold.reports.requests.types import (
    FORMATS,
    Renderer,
    ReportFormat,
    ReportParameters,
    ReportRequest,
    ReportType,
)

_STATEMENTS: Final = (ReportType.BANK_STATEMENT_REPORT, ReportType.BROKERAGE_STATEMENT_REPORT)
RENDERERS: Final[Mapping[tuple[ReportType, ReportFormat], Renderer]] = MappingProxyType(
    {
        **{(kind, ReportFormat(name)): in_format(WRITERS[name]) for kind in _STATEMENTS for name in WRITERS},
        (ReportType.TRADE_REPORT, ReportFormat.TMS_CSV): write_trades,
        (ReportType.TRADE_REPORT, ReportFormat.CSV): write_trades,
        (ReportType.SECURITY_PRICE_REPORT, ReportFormat.TMS_CSV): write_prices,
        (ReportType.POSITION_SUMMARY_REPORT, ReportFormat.PDF): write_positions_pdf,
        (ReportType.POSITION_SUMMARY_REPORT, ReportFormat.CSV): write_positions_csv,
    }
)


def formats_of(type_: ReportType, parameters: ReportParameters) -> list[ReportFormat]:
    """Return the formats in which a report is made; what goes on after another has no balances to show."""
    if parameters.after_report_id is not None:
        return [ReportFormat.CAMT054]
    return [output_format for kind, output_format in RENDERERS if kind == type_]


def file_name_of(request: ReportRequest, output_format: ReportFormat) -> str:
    """Return the name of a file of a report: what it is and which days it shows."""
    parameters = request.parameters
    days = [
        each.isoformat() for each in (parameters.date, parameters.date_from, parameters.date_to) if each is not None
    ]
    return "-".join((request.type.lower().replace("_", "-"), *days)) + f".{FORMATS[output_format].extension}"
