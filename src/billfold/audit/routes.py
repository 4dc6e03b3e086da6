"""The audit log of the team: pages, those of one member, and the file."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from uuid import UUID

import msgspec

from billfold.access.users import store as user_store
from billfold.audit import store as audit_store
from billfold.audit.schemas import COLUMNS, CustomerAuditLogEntry, cells_of, render_entry
from billfold.audit.types import AuditEntry, EntryFilter
from billfold.http.caller import CustomerCaller
from billfold.http.csv_export import CSV_ANSWER, ROWS_PER_PAGE, csv_stream
from billfold.http.list_params import ListQuery, Part, Since, Until, page_of
from billfold.http.operations import get, with_scope
from billfold.http.responses import StreamedResponse
from billfold.http.schemas import CursorList
from billfold.ledger.bank import Bank
from billfold.platform.dates import iso_z
from billfold.platform.errors import NotFound
from billfold.platform.paging import Page

READS = with_scope("team.read", "team")


class SpanQuery(msgspec.Struct, frozen=True, kw_only=True):
    """From when to when."""

    timestamp_from: Since = None
    timestamp_to: Until = None


@get("/api/v1/team/audit-logs/", READS, tag="team")
async def list_audit_logs(
    member: CustomerCaller, bank: Bank, wanted: ListQuery, span: SpanQuery
) -> CursorList[CustomerAuditLogEntry]:
    """List what was done, newest first. Times are of the wall clock, also in a sandbox."""
    page = await _page(bank, wanted, _entry_filter(member, None, span))
    return page_of(page, [render_entry(row) for row in page.items])


@get("/api/v1/team/members/{member_id}/audit-logs/", READS, tag="team")
async def list_member_audit_logs(
    member: CustomerCaller, bank: Bank, member_id: UUID, wanted: ListQuery, span: SpanQuery
) -> CursorList[CustomerAuditLogEntry]:
    """List what one member did, newest first."""
    member_uuid = await _check_member(member, bank, member_id)
    page = await _page(bank, wanted, _entry_filter(member, member_uuid, span))
    return page_of(page, [render_entry(row) for row in page.items])


@get("/api/v1/team/audit-logs.csv", READS, tag="team", documented=CSV_ANSWER, refuses=("not-found",))
async def get_audit_logs_csv(
    member: CustomerCaller, bank: Bank, span: SpanQuery, member_id: UUID | None = None
) -> StreamedResponse:
    """Read the same entries as one CSV file, newest first; `details` are JSON."""
    member_uuid = None
    if member_id is not None:
        member_uuid = await _check_member(member, bank, member_id)
    rows = partial(_rows, bank, _entry_filter(member, member_uuid, span))
    return csv_stream("audit-logs.csv", COLUMNS, rows, cells_of=cells_of)


async def _check_member(member: CustomerCaller, bank: Bank, member_id: UUID) -> UUID:
    """Return the id when it is a member of the team, active or not. Raises NotFound."""
    if not await user_store.is_member(bank.pool, member.customer_id, member_id):
        raise NotFound("There is no such member.")
    return member_id


def _entry_filter(member: CustomerCaller, member_id: UUID | None, span: SpanQuery) -> EntryFilter:
    return EntryFilter(
        customer_id=member.customer_id, member_id=member_id, since=span.timestamp_from, until=span.timestamp_to
    )


async def _page(bank: Bank, wanted: ListQuery, entry_filter: EntryFilter) -> Page[AuditEntry]:
    scope = f"audit-logs:{entry_filter.customer_id}:{entry_filter.member_id}"
    filters = {"since": entry_filter.since, "until": entry_filter.until}
    return await wanted.page(
        bank.pager,
        scope,
        filters,
        read=lambda part: audit_store.list_entries(
            bank.pool, entry_filter, _place(part), descending=part.descending, limit=part.limit
        ),
        sort_key_of=lambda row: (iso_z(row.recorded_at), row.entry_no),
    )


async def _rows(bank: Bank, entry_filter: EntryFilter, last: AuditEntry | None) -> list[AuditEntry]:
    place = None if last is None else (last.recorded_at, last.entry_no)
    return await audit_store.list_entries(bank.pool, entry_filter, place, limit=ROWS_PER_PAGE)


def _place(part: Part) -> tuple[datetime, int] | None:
    if part.place is None:
        return None
    return datetime.fromisoformat(str(part.place[0])), int(part.place[1])
