"""A request for a report, the formats in which a report is made, and whom it is about."""

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from types import MappingProxyType
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
"""How long a report is kept, in business time."""
RANGE_DAYS_MAX: Final = 31
POCKETS_MAX: Final = 100
FINISHED_JOB: Final = "report.finished"
"""Raises the event of formats that were requested at once; its object is their batch."""
UNFINISHED_MAX: Final = 100
"""How many formats of one customer may wait or be made at once."""


class ReportType(StrEnum):
    """What a report shows."""

    BANK_STATEMENT_REPORT = "BANK_STATEMENT_REPORT"
    BROKERAGE_STATEMENT_REPORT = "BROKERAGE_STATEMENT_REPORT"
    TRADE_REPORT = "TRADE_REPORT"
    SECURITY_PRICE_REPORT = "SECURITY_PRICE_REPORT"
    POSITION_SUMMARY_REPORT = "POSITION_SUMMARY_REPORT"


class ReportFormat(StrEnum):
    """What a file of a report is."""

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


class ReportRequestStatus(StrEnum):
    """Where a request stands, or one format of a report."""

    PENDING = "PENDING"
    PROCESSING = "PROCESSING"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"


class FailureReason(StrEnum):
    """Why a report could not be made."""

    RENDERING_FAILED = "RENDERING_FAILED"
    """It cannot be made of what is stored."""
    STORAGE_UNAVAILABLE = "STORAGE_UNAVAILABLE"
    """There was no room for the file, or the file store did not answer, several times."""
    INTERRUPTED = "INTERRUPTED"
    """Workers stopped while making it, several times."""


class DateType(StrEnum):
    """Which date of a trade lies in the range of a trade report."""

    BOOK_DATE = "BOOK_DATE"
    SETTLEMENT_DATE = "SETTLEMENT_DATE"


class FormatFacts(NamedTuple):
    """How a file of a format is called and served."""

    extension: str
    media_type: str


FORMATS: Final[Mapping[ReportFormat, FormatFacts]] = MappingProxyType(
    {
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
    }
)


class ReportParameters(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a report is about, as it was requested; days are Eastern. What its type does not take is None."""

    customer_id: UUID | None = None
    pocket_ids: tuple[UUID, ...] | None = None
    date: Day | None = None
    date_from: Day | None = None
    date_to: Day | None = None
    date_type: DateType | None = None
    cusips: tuple[str, ...] | None = None
    after_report_id: UUID | None = None


class ReportRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request as stored. Times are business time; `created_at` is the instant that the report shows.

    `entry_no` is the customer's last journal entry at the request: the report shows none after it. `entries_after` is
    the last one that an earlier notification showed, where the report continues from there.
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
    def shown_at(self) -> datetime:
        """The instant that the report shows: that of the request, or the end of its last day if that came before."""
        day = self.parameters.date or self.parameters.date_to
        assert day is not None
        return min(self.created_at, et_instant(day + timedelta(days=1), 0))


class ReportedFormat(msgspec.Struct, frozen=True, kw_only=True):
    """One format of a report: where it stands, in percent, and its file when there is one."""

    output_format: ReportFormat
    status: ReportRequestStatus
    failure_reason: FailureReason | None
    progress: int
    file_id: UUID | None
    size_bytes: int | None


class ReportSource(NamedTuple):
    """What a renderer makes a file of.

    All that it writes follows from what is stored of the customer up to `position`: no clock, no random ids, so that
    the same file is made again. `position` is that of the request, or of the end of its last day if that came before.
    `pocket_ids` are those that the report is about, in the order of the request.
    """

    bank: Bank
    request: ReportRequest
    pocket_ids: tuple[UUID, ...]
    position: LedgerPosition
    report_progress: Callable[[int], None]
    """Call it with the percents that are done, as often as one likes."""
    figures: list[Figure]
    """What the bank signs of the file besides its bytes, in the order in which the file shows it."""


Renderer = Callable[[ReportSource, IO[bytes]], Awaitable[None]]
"""Writes a file of one type and format. What grows with the customer is written row by row, never in memory whole.

Whatever it raises fails the report, except that what passes is tried again: a full disk, an unavailable database.
"""


def dollars(cents: int) -> Decimal:
    """Return cents as dollars with two decimals."""
    return Decimal(cents).scaleb(-2)


def per_hundred(micros: int) -> Decimal:
    """Return a price in micros as dollars per $100 of face value with six decimals."""
    return Decimal(micros).scaleb(-6)


_CUSTOMER = "SELECT name FROM customer WHERE customer_id = $1"
_POCKETS = "SELECT pocket_id, name FROM pocket WHERE customer_id = $1 ORDER BY opened_at, written_no"
_OPENED = "SELECT pocket_id FROM pocket WHERE customer_id = $1 AND opened_at <= $2 ORDER BY opened_at, written_no"
_TRADED = "SELECT DISTINCT cusip FROM trade WHERE customer_id = $1 AND entry_no <= $2 ORDER BY cusip"


class Entity(NamedTuple):
    """A customer and the names of its Pockets."""

    customer_id: UUID
    name: str
    pockets: Mapping[UUID, str]

    def distinct_name(self, pocket_id: UUID) -> str:
        """Return the name of a Pocket; where several have the same, with the beginning of its id."""
        name = self.pockets[pocket_id]
        return name if Counter(self.pockets.values())[name] == 1 else f"{name} ({pocket_id.hex[:8]})"


async def entity_of(bank: Bank, customer_id: UUID) -> Entity:
    """Return a customer and its Pockets as they are called now. Raises NotFound."""
    name = await bank.pool.fetchval(_CUSTOMER, customer_id)
    if name is None:
        raise NotFound("There is no such customer.")
    return Entity(
        customer_id, name, {row["pocket_id"]: row["name"] for row in await bank.pool.fetch(_POCKETS, customer_id)}
    )


async def pockets_of(bank: Bank, request: ReportRequest) -> tuple[UUID, ...]:
    """Return the Pockets that a report is about: those named, or all that were open when it was requested."""
    named = request.parameters.pocket_ids
    if named is not None:
        return named
    rows = await bank.pool.fetch(_OPENED, request.customer_id, request.created_at)
    return tuple(row["pocket_id"] for row in rows)


async def last_entry_shown(bank: Bank, request: ReportRequest) -> int:
    """Return the number of the last journal entry that a report shows."""
    if request.shown_at < request.created_at:
        return await last_entry_before(bank.pool, request.customer_id, request.shown_at)
    return request.entry_no


async def cusips_traded(conn: Db, customer_id: UUID, through: int) -> list[str]:
    """Return the CUSIPs that a customer has ever traded up to a journal entry."""
    return [row["cusip"] for row in await conn.fetch(_TRADED, customer_id, through)]
