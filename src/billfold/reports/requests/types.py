"""A request for a report, the formats of a report, and its subject."""

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from typing import IO, Final, NamedTuple, TypeAlias
from uuid import UUID

import msgspec

from billfold.ledger.bank import Bank
from billfold.platform.database.connection import Db
from billfold.platform.dates import et_instant
from billfold.platform.errors import NotFound
from billfold.reports.entries.store import last_entry_before
from billfold.reports.entries.types import LedgerPosition
from billfold.reports.proofs.signatures import Figure

Day: TypeAlias = date
LIFETIME: Final = timedelta(days=90)
"""Lifetime of a report, in business time."""
RANGE_DAYS_MAX: Final = 31
POCKETS_MAX: Final = 100
FINISHED_JOB: Final = "report.finished"
"""Raises the event of a batch of formats; its object is the batch."""
UNFINISHED_MAX: Final = 100
"""Maximum number of one customer's formats that wait or are being made."""


class ReportType(StrEnum):
    """The content of a report."""

    BANK_STATEMENT_REPORT = "BANK_STATEMENT_REPORT"
    BROKERAGE_STATEMENT_REPORT = "BROKERAGE_STATEMENT_REPORT"
    TRADE_REPORT = "TRADE_REPORT"
    SECURITY_PRICE_REPORT = "SECURITY_PRICE_REPORT"
    POSITION_SUMMARY_REPORT = "POSITION_SUMMARY_REPORT"


class ReportFormat(StrEnum):
    """The file format of a report."""

    CAMT053 = "CAMT053"
    CAMT052 = "CAMT052"
    CAMT054 = "CAMT054"
    BAI2 = "BAI2"
    OFX = "OFX"
    MT940 = "MT940"
    XLSX = "XLSX"
    TMS_CSV = "TMS_CSV"
    CSV = "CSV"
    PDF = "PDF"
    BEANCOUNT = "BEANCOUNT"
    LEDGER = "LEDGER"
    QUICKBOOKS_CSV = "QUICKBOOKS_CSV"
    XERO_CSV = "XERO_CSV"


class ReportRequestStatus(StrEnum):
    """The status of a request, or of one format of a report."""

    PENDING = "PENDING"
    PROCESSING = "PROCESSING"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"


class FailureReason(StrEnum):
    """The reason why a report failed."""

    RENDERING_FAILED = "RENDERING_FAILED"
    """The stored data does not allow it."""
    STORAGE_UNAVAILABLE = "STORAGE_UNAVAILABLE"
    """There was not enough space for the file, or the file store did not answer, several times."""
    INTERRUPTED = "INTERRUPTED"
    """Workers stopped while making it, several times."""


class DateType(StrEnum):
    """The date by which a trade report selects trades."""

    BOOK_DATE = "BOOK_DATE"
    SETTLEMENT_DATE = "SETTLEMENT_DATE"


class FormatFacts(NamedTuple):
    """The file extension and media type of a format."""

    extension: str
    media_type: str


FORMATS: Final[Mapping[ReportFormat, FormatFacts]] = {
    ReportFormat.CAMT053: FormatFacts("camt053.xml", "application/xml"),
    ReportFormat.CAMT052: FormatFacts("camt052.xml", "application/xml"),
    ReportFormat.CAMT054: FormatFacts("camt054.xml", "application/xml"),
    ReportFormat.BAI2: FormatFacts("bai", "text/plain; charset=us-ascii"),
    ReportFormat.OFX: FormatFacts("ofx", "application/x-ofx"),
    ReportFormat.MT940: FormatFacts("sta", "text/plain; charset=us-ascii"),
    ReportFormat.XLSX: FormatFacts("xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
    ReportFormat.TMS_CSV: FormatFacts("tms.csv", "text/csv; charset=utf-8"),
    ReportFormat.CSV: FormatFacts("csv", "text/csv; charset=utf-8"),
    ReportFormat.PDF: FormatFacts("pdf", "application/pdf"),
    ReportFormat.BEANCOUNT: FormatFacts("beancount", "text/plain; charset=utf-8"),
    ReportFormat.LEDGER: FormatFacts("ledger", "text/plain; charset=utf-8"),
    ReportFormat.QUICKBOOKS_CSV: FormatFacts("quickbooks.csv", "text/csv; charset=utf-8"),
    ReportFormat.XERO_CSV: FormatFacts("xero.csv", "text/csv; charset=utf-8"),
}


class ReportParameters(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The parameters of a report, as requested; days are Eastern. Parameters that its type does not have are None."""

    customer_id: UUID | None = None
    pocket_ids: tuple[UUID, ...] | None = None
    date: Day | None = None
    date_from: Day | None = None
    date_to: Day | None = None
    date_type: DateType | None = None
    cusips: tuple[str, ...] | None = None
    after_report_id: UUID | None = None
    as_of: datetime | None = None


class ReportRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request as stored. Times are business time.

    `entry_no` is the customer's last journal entry at `seen_at`: the report shows none after it.
    `entries_after` is the last one shown by an earlier notification that this report continues.
    """

    customer_id: UUID
    report_request_id: UUID
    partner_id: UUID
    report_id: UUID
    type: ReportType
    parameters: ReportParameters
    output_formats: tuple[ReportFormat, ...]
    status: ReportRequestStatus
    failure_reason: FailureReason | None
    requested_by: str
    entry_no: int
    entries_after: int | None
    created_at: datetime
    updated_at: datetime
    expires_at: datetime

    @property
    def seen_at(self) -> datetime:
        """The instant from which the report is seen: that of the request, or the earlier one that it names."""
        return self.parameters.as_of or self.created_at

    @property
    def shown_at(self) -> datetime:
        """The instant that the report shows: that from which it is seen, or the end of its last day if earlier."""
        day = self.parameters.date or self.parameters.date_to
        assert day is not None
        return min(self.seen_at, et_instant(day + timedelta(days=1), 0))


class ReportedFormat(msgspec.Struct, frozen=True, kw_only=True):
    """One format of a report: its status, its progress in percent, and its file when finished."""

    output_format: ReportFormat
    status: ReportRequestStatus
    failure_reason: FailureReason | None
    progress: int
    file_id: UUID | None
    size_bytes: int | None


class ReportSource(NamedTuple):
    """The input of a renderer.

    Its output depends only on the customer's stored data up to `position`: no clock, no random ids, so that the same
    file can be made again. `position` is that of the request, or of the end of its last day if that was earlier.
    `pocket_ids` are those that the report covers, in the order of the request.
    """

    bank: Bank
    request: ReportRequest
    pocket_ids: tuple[UUID, ...]
    position: LedgerPosition
    report_progress: Callable[[int], None]
    """Reports the progress in percent; may be called as often as needed."""
    figures: list[Figure]
    """Figures that the bank signs in addition to the file's bytes, in display order."""


Renderer = Callable[[ReportSource, IO[bytes]], Awaitable[None]]
"""Writes a file of one type and format. Data that grows with the customer is streamed row by row.

Whatever it raises fails the report, except that what passes is tried again: a full disk, an unavailable database.
"""


def dollars(cents: int) -> Decimal:
    """Return cents as dollars with two decimals."""
    return Decimal(cents).scaleb(-2)


def per_hundred(micros: int) -> Decimal:
    """Return a price in micros as dollars per $100 of face value with six decimals."""
    return Decimal(micros).scaleb(-6)


_CUSTOMER = "SELECT name FROM customer WHERE customer_id = $1"
# The name is the first of the values of a state; without one, the present name.
_POCKETS = """
SELECT p.pocket_id, coalesce((
         SELECT v.state ->> 0 FROM pocket_version v
          WHERE v.customer_id = p.customer_id AND v.pocket_id = p.pocket_id AND v.known_at <= $2
          ORDER BY v.known_at DESC, v.version DESC LIMIT 1), p.name) AS name
  FROM pocket p WHERE p.customer_id = $1 AND ($2::timestamptz IS NULL OR p.opened_at <= $2)
 ORDER BY p.opened_at, p.written_no
"""
_OPENED = "SELECT pocket_id FROM pocket WHERE customer_id = $1 AND opened_at <= $2 ORDER BY opened_at, written_no"
_TRADED = "SELECT DISTINCT cusip FROM trade WHERE customer_id = $1 AND entry_no <= $2 ORDER BY cusip"


class Entity(NamedTuple):
    """A customer and the names of its Pockets."""

    customer_id: UUID
    name: str
    pockets: Mapping[UUID, str]

    def distinct_name(self, pocket_id: UUID) -> str:
        """Return the name of a Pocket; if several share it, with the beginning of its id."""
        name = self.pockets[pocket_id]
        return name if Counter(self.pockets.values())[name] == 1 else f"{name} ({pocket_id.hex[:8]})"


async def entity_of(bank: Bank, request: ReportRequest) -> Entity:
    """Return the customer of a report and its Pockets, with their names now or as of its instant. Raises NotFound."""
    customer_id = request.customer_id
    name = await bank.pool.fetchval(_CUSTOMER, customer_id)
    if name is None:
        raise NotFound("There is no such customer.")
    rows = await bank.pool.fetch(_POCKETS, customer_id, request.parameters.as_of)
    return Entity(customer_id, name, {row["pocket_id"]: row["name"] for row in rows})


async def pockets_of(bank: Bank, request: ReportRequest) -> tuple[UUID, ...]:
    """Return the Pockets that a report covers: those named, or all that had been opened by then."""
    named = request.parameters.pocket_ids
    if named is not None:
        return named
    rows = await bank.pool.fetch(_OPENED, request.customer_id, request.seen_at)
    return tuple(row["pocket_id"] for row in rows)


async def last_entry_shown(bank: Bank, request: ReportRequest) -> int:
    """Return the number of the last journal entry that a report shows."""
    if request.shown_at < request.seen_at:
        return await last_entry_before(bank.pool, request.customer_id, request.shown_at)
    return request.entry_no


async def cusips_traded(conn: Db, customer_id: UUID, through: int) -> list[str]:
    """Return the CUSIPs that a customer has ever traded up to a journal entry."""
    return [row["cusip"] for row in await conn.fetch(_TRADED, customer_id, through)]
