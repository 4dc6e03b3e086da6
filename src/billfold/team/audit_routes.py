"""The audit log of the team: all entries, those of one member, and the CSV file."""

from functools import partial
from typing import Annotated
from uuid import UUID

import msgspec

from billfold.audit import store as audit_store
from billfold.audit.rules import AuditEntry, EntryFilter
from billfold.audit.store import COLUMNS, CustomerAuditLogEntry, cells_of, render_entry
from billfold.http.operations import get, with_scope
from billfold.http.parameters import ListQuery, Query, Since, Until, page_of
from billfold.http.responses import CSV_ANSWER, ROWS_PER_PAGE, Separated, StreamedResponse, csv_stream
from billfold.http.schemas import CursorList
from billfold.identity.users import store as user_store
from billfold.ledger.bank import Bank
from billfold.oauth.caller import CustomerCaller
from billfold.platform.errors import NotFound
from billfold.platform.text import Separators

READS = with_scope("team.read", "team")


class SpanQuery(msgspec.Struct, frozen=True, kw_only=True):
    """First and last instant of the entries, and the types of what they are about."""

    timestamp_from: Since = None
    timestamp_to: Until = None
    resource_types: Annotated[
        list[str] | None, Query(name="resource_type[]", description="Like `batch` or `member`. All if left out.")
    ] = None


@get("/api/v1/team/audit-logs/", READS, tag="team")
async def list_audit_logs(
    member: CustomerCaller, bank: Bank, wanted: ListQuery, span: SpanQuery
) -> CursorList[CustomerAuditLogEntry]:
    """List audit log entries, newest first. Times are wall time, even in a sandbox."""
    return await _page(member, bank, wanted, member_id=None, span=span)


@get("/api/v1/team/members/{member_id}/audit-logs/", READS, tag="team")
async def list_member_audit_logs(
    member: CustomerCaller, bank: Bank, member_id: UUID, wanted: ListQuery, span: SpanQuery
) -> CursorList[CustomerAuditLogEntry]:
    """List what one member did, newest first."""
    return await _page(member, bank, wanted, member_id=member_id, span=span)


@get("/api/v1/team/audit-logs.csv", READS, tag="team", documented=CSV_ANSWER, refuses=("not-found",))
async def get_audit_logs_csv(
    *,
    member: CustomerCaller,
    bank: Bank,
    span: SpanQuery,
    member_id: UUID | None = None,
    separator: Separated = Separators.COMMA,
) -> StreamedResponse:
    """Read the same entries as one CSV file, newest first; `details` are JSON."""
    entry_filter = await _entry_filter(member, bank, member_id, span=span)
    return csv_stream(
        "audit-logs.csv",
        COLUMNS,
        partial(_rows, entry_filter),
        cells_of=partial(cells_of, bank.vault),
        separators=separator,
        bank=bank,
    )


async def _entry_filter(member: CustomerCaller, bank: Bank, member_id: UUID | None, span: SpanQuery) -> EntryFilter:
    """Return the filter. Raises NotFound unless the member is one of the team, active or not."""
    if member_id is not None and not await user_store.is_member(bank.pool, member.customer_id, member_id):
        raise NotFound("There is no such member.")
    return EntryFilter(
        customer_id=member.customer_id,
        member_id=member_id,
        resource_types=span.resource_types,
        since=span.timestamp_from,
        until=span.timestamp_to,
    )


async def _page(
    member: CustomerCaller, bank: Bank, wanted: ListQuery, member_id: UUID | None, span: SpanQuery
) -> CursorList[CustomerAuditLogEntry]:
    listed, values = audit_store.filtered_list(await _entry_filter(member, bank, member_id, span=span))
    page = await wanted.read(bank, listed, *values, scope="audit-logs")
    return page_of(page, [render_entry(bank.vault, row) for row in page.items])


async def _rows(entry_filter: EntryFilter, bank: Bank, last: AuditEntry | None) -> list[AuditEntry]:
    place = None if last is None else (last.recorded_at, last.entry_no)
    return await audit_store.list_entries(bank.pool, entry_filter, place, limit=ROWS_PER_PAGE)
