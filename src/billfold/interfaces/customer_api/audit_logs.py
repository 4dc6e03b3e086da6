"""The audit log of the team: pages, those of one member, and the file."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from uuid import UUID

from litestar import get
from litestar.di import Provide
from litestar.response import Stream

from billfold.domain import audit, people
from billfold.domain.audit import Recorded, Wanted
from billfold.engine.bank import Bank
from billfold.interfaces.customer_api.groups import TEAM
from billfold.interfaces.customer_api.member import Member
from billfold.interfaces.customer_api.told import CSV_ANSWER
from billfold.interfaces.http import ids_in
from billfold.interfaces.http.csv_table import ROWS_A_PAGE, csv_stream
from billfold.interfaces.http.lists import ListQuery, Since, Until, list_query, page_of
from billfold.interfaces.http.marks import granted, refuses
from billfold.interfaces.http.shapes.audit import (
    COLUMNS,
    CustomerAuditLogEntry,
    cells_of,
    render_entry,
)
from billfold.interfaces.http.shapes.pages import CursorList
from billfold.interfaces.http.transaction_lists import instant, through
from billfold.kit.dates import iso_z
from billfold.kit.errors import NotFound
from billfold.kit.paging import Page

READS = granted("team.read", TEAM)
Span = tuple[datetime | None, datetime | None]


def _span(timestamp_from: Since = None, timestamp_to: Until = None) -> Span:
    return instant("timestamp_from", timestamp_from), through("timestamp_to", timestamp_to)


_SPAN = {"span": Provide(_span, sync_to_thread=False)}
_LISTED = {**list_query(), **_SPAN}


@get(
    "/api/v1/team/audit-logs/",
    dependencies=_LISTED,
    operation_id="list_audit_logs",
    opt=READS,
    tags=["team"],
)
async def list_audit_logs(
    member: Member, bank: Bank, wanted: ListQuery, span: Span
) -> CursorList[CustomerAuditLogEntry]:
    """List what was done, newest first. Times are of the wall clock, also in a sandbox."""
    page = await _page(bank, wanted, _wanted(member, None, span))
    return page_of(page, [render_entry(row) for row in page.items])


@get(
    "/api/v1/team/members/{member_id:str}/audit-logs/",
    dependencies=_LISTED,
    operation_id="list_member_audit_logs",
    opt=READS | refuses("not-found"),
    tags=["team"],
)
async def list_member_audit_logs(
    member: Member, bank: Bank, member_id: str, wanted: ListQuery, span: Span
) -> CursorList[CustomerAuditLogEntry]:
    """List what one member did, newest first."""
    own_id = await _own(member, bank, ids_in.path_uuid("member_id", member_id))
    page = await _page(bank, wanted, _wanted(member, own_id, span))
    return page_of(page, [render_entry(row) for row in page.items])


@get(
    "/api/v1/team/audit-logs.csv",
    dependencies=_SPAN,
    operation_id="get_audit_logs_csv",
    opt=READS | refuses("not-found") | CSV_ANSWER,
    tags=["team"],
)
async def get_audit_logs_csv(
    member: Member, bank: Bank, span: Span, member_id: str | None = None
) -> Stream:
    """Read the same entries as one CSV file, newest first; `details` are JSON."""
    own_id = None
    if member_id is not None:
        own_id = await _own(member, bank, ids_in.query_uuid("member_id", member_id))
    rows = partial(_rows, bank, _wanted(member, own_id, span))
    return csv_stream("audit-logs.csv", COLUMNS, rows, cells_of)


async def _own(member: Member, bank: Bank, member_id: UUID) -> UUID:
    """Return the id when it is of the team, be he active or not. Raises NotFound."""
    if not await people.is_member(bank.pool, member.customer_id, member_id):
        raise NotFound("There is no such member.")
    return member_id


def _wanted(member: Member, member_id: UUID | None, span: Span) -> Wanted:
    since, until = span
    return Wanted(customer_id=member.customer_id, member_id=member_id, since=since, until=until)


async def _page(bank: Bank, wanted: ListQuery, asked: Wanted) -> Page[Recorded]:
    scope = f"audit-logs:{asked.customer_id}:{asked.member_id}"
    filters = {"since": asked.since, "until": asked.until}
    position = wanted.position(bank.pager, scope, filters)
    backwards = position is not None and position.direction == "prev"
    place = None
    if position is not None:
        at, number = position.place
        place = datetime.fromisoformat(str(at)), int(number)
    rows = await audit.list_entries(
        bank.pool, asked, place, descending=not backwards, limit=wanted.limit + 1
    )
    return bank.pager.page(
        scope,
        filters,
        rows,
        limit=wanted.limit,
        came_from=position,
        place_of=lambda row: (iso_z(row.recorded_at), row.entry_no),
    )


async def _rows(bank: Bank, asked: Wanted, last: Recorded | None) -> list[Recorded]:
    place = None if last is None else (last.recorded_at, last.entry_no)
    return await audit.list_entries(bank.pool, asked, place, limit=ROWS_A_PAGE)


ROUTES = [list_audit_logs, get_audit_logs_csv, list_member_audit_logs]
