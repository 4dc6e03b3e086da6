"""Rows of applications. Each write leaves the fingerprint of its row in the audit log, so an edited row is found."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from billfold.audit.record import AuditedAction, AuditedTable
from billfold.onboarding.applications import types
from billfold.onboarding.applications.types import (
    ApplicationRow,
)
from billfold.platform.database.connection import Db
from billfold.platform.database.paging import BY_CREATION, KeysetList

_applications = AuditedTable(ApplicationRow, "application", key=("customer_id", "application_id"))
_parties = AuditedTable(
    types.RelatedPartyRow,
    "related_party_application",
    key=("customer_id", "application_id", "related_party_id"),
    proved_by=("application_id", "related_party_id"),
)
_moves = AuditedTable(types.MoveRow, "application_move", key=("move_id",))
_members = AuditedTable(types.AwaitedMemberRow, "awaited_team_member", key=("member_id",))
_BY_APPLICANT = f"{_applications.select} WHERE applicant_id = $1"
_OF_PARTNER = f"{_applications.select} WHERE partner_id = $1 AND application_id = $2 ORDER BY written_no LIMIT 1"
_ANY_BY_ID = f"{_applications.select} WHERE application_id = $1 ORDER BY written_no LIMIT 2"
_IN_REVIEW = f"""{_applications.select} WHERE status = 'MANUAL_REVIEW' AND NOT is_approved
 ORDER BY submitted_at, application_id LIMIT $1
"""
_ANY = f"""{_applications.select} WHERE $1::text[] IS NULL OR status = ANY($1)
 ORDER BY created_at DESC, written_no DESC LIMIT $2
"""
_UPDATE_PARTY = """
ON CONFLICT (customer_id, application_id, related_party_id) DO UPDATE
   SET content = excluded.content, updated_at = excluded.updated_at
"""
_PARTIES = f"""{_parties.select}
 WHERE customer_id = ANY($1::uuid[]) AND application_id = ANY($2::uuid[]) ORDER BY created_at, written_no
"""
_DELETE_PARTY = """
DELETE FROM related_party_application WHERE customer_id = $1 AND application_id = $2 AND related_party_id = $3
"""
_MOVES = f"{_moves.select} WHERE customer_id = $1 AND application_id = $2 ORDER BY move_no"
_MEMBERS = f"{_members.select} WHERE customer_id = $1 AND application_id = $2 ORDER BY created_at, written_no"
_DROP_MEMBERS = "DELETE FROM awaited_team_member WHERE customer_id = $1 AND application_id = $2 RETURNING member_id"


APPLICATIONS = KeysetList(
    f"""
SELECT {_applications.columns()}, written_no FROM application
 WHERE customer_id = $1 AND kind = $2 AND ($3::text[] IS NULL OR status = ANY($3))
   AND ($4::uuid[] IS NULL OR application_id = ANY($4)) AND {{page}}
""",
    _applications.read,
    **BY_CREATION,
)
"""The applications of one kind that a customer made, by status and ids, newest first."""


get_application = _applications.get
lock_application = _applications.lock
add_application = _applications.add  # False when its owner has one of this id


async def find_by_applicant(conn: Db, applicant_id: UUID) -> ApplicationRow | None:
    """Return the application that a customer originates from, or None."""
    return await _applications.first(conn, _BY_APPLICANT, applicant_id)


async def get_partner_application(conn: Db, partner_id: UUID, application_id: UUID) -> ApplicationRow:
    """Return an application made by a partner or one of its customers. Raises NotFound."""
    return await _applications.one(conn, _OF_PARTNER, partner_id, application_id)


async def list_by_id(conn: Db, application_id: UUID) -> list[ApplicationRow]:
    """Return the applications of this id of any owner: two may have chosen the same."""
    return await _applications.all(conn, _ANY_BY_ID, application_id)


async def list_in_review(conn: Db, limit: int) -> list[ApplicationRow]:
    """Return the applications that wait for an operator, in the order of submission."""
    return await _applications.all(conn, _IN_REVIEW, limit)


async def list_all(conn: Db, statuses: Sequence[str] | None, limit: int) -> list[ApplicationRow]:
    """Return applications of all owners, newest first."""
    return await _applications.all(conn, _ANY, statuses, limit)


async def update_application(action: AuditedAction, row: ApplicationRow, **changes: Any) -> ApplicationRow:
    """Change columns of a locked application; return the updated row."""
    return await _applications.change(action, row.customer_id, row.application_id, **changes)


async def move_application(
    action: AuditedAction, row: ApplicationRow, status: types.ApplicationStatus, *, at: datetime, **changes: Any
) -> ApplicationRow:
    """Change the status of a locked application, and record the move."""
    moved = await update_application(action, row, status=status, move_no=row.move_no + 1, updated_at=at, **changes)
    move = types.MoveRow(
        customer_id=row.customer_id,
        move_id=moved.move_id,
        application_id=row.application_id,
        move_no=moved.move_no,
        status=status,
        moved_at=at,
    )
    await _moves.add(action, move, then="")
    return moved


find_move = _moves.find


async def list_moves(conn: Db, row: ApplicationRow) -> list[types.MoveRow]:
    """Return the moves of an application, in order."""
    return await _moves.all(conn, _MOVES, row.customer_id, row.application_id)


async def list_related_parties(
    conn: Db, owners: Sequence[UUID], application_ids: Sequence[UUID]
) -> list[types.RelatedPartyRow]:
    """Return the related parties of applications of these owners, in the order in which they were added."""
    return await _parties.all(conn, _PARTIES, owners, application_ids)


async def put_related_party(action: AuditedAction, row: types.RelatedPartyRow) -> None:
    """Add a related party, or change it."""
    await _parties.add(action, row, _UPDATE_PARTY)


async def delete_related_party(action: AuditedAction, row: ApplicationRow, related_party_id: UUID) -> None:
    """Remove a related party."""
    await action.conn.execute(_DELETE_PARTY, row.customer_id, row.application_id, related_party_id)
    action.proves("related_party_application", f"{row.application_id}/{related_party_id}", None)


async def list_awaited_members(conn: Db, row: ApplicationRow) -> list[types.AwaitedMemberRow]:
    """Return the members to be invited on approval, in the order in which they were named."""
    return await _members.all(conn, _MEMBERS, row.customer_id, row.application_id)


async def add_awaited_member(action: AuditedAction, row: types.AwaitedMemberRow) -> None:
    """Add a member to be invited on approval."""
    await _members.add(action, row, then="")


async def drop_awaited_members(action: AuditedAction, row: ApplicationRow) -> bool:
    """Remove the members to be invited on approval; return whether there were any."""
    found = await action.conn.fetch(_DROP_MEMBERS, row.customer_id, row.application_id)
    for each in found:
        action.proves("awaited_team_member", each["member_id"], None)
    return bool(found)
