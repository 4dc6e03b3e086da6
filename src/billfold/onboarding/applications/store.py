"""Rows of applications. Each write leaves the fingerprint of its row in the audit log, so an edited row is found."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

import msgspec
from asyncpg import Record

from billfold.audit.record import AuditedAction
from billfold.onboarding.applications.types import (
    ApplicationRow,
    ApplicationStatus,
    AwaitedMemberRow,
    MoveRow,
    RelatedPartyRow,
)
from billfold.platform.database.connection import Connection, Pool
from billfold.platform.database.paging import BY_CREATION, KeysetList
from billfold.platform.database.rows import proof_of
from billfold.platform.errors import NotFound

RowType = TypeVar("RowType", bound=msgspec.Struct)

_COLUMNS = ", ".join(ApplicationRow.__struct_fields__)
_PARTY_COLUMNS = ", ".join(RelatedPartyRow.__struct_fields__)
_BY_ID = f"SELECT {_COLUMNS} FROM application WHERE customer_id = $1 AND application_id = $2"
_BY_APPLICANT = f"SELECT {_COLUMNS} FROM application WHERE applicant_id = $1"
_OF_PARTNER = f"""
SELECT {_COLUMNS} FROM application WHERE partner_id = $1 AND application_id = $2
 ORDER BY written_no LIMIT 1
"""
_ANY_BY_ID = f"SELECT {_COLUMNS} FROM application WHERE application_id = $1 ORDER BY written_no LIMIT 2"
_IN_REVIEW = f"""
SELECT {_COLUMNS} FROM application WHERE status = 'MANUAL_REVIEW' AND NOT is_approved
 ORDER BY submitted_at, application_id LIMIT $1
"""
_ANY = f"""
SELECT {_COLUMNS} FROM application WHERE $1::text[] IS NULL OR status = ANY($1)
 ORDER BY created_at DESC, written_no DESC LIMIT $2
"""
_INSERT = f"""
INSERT INTO application ({_COLUMNS})
VALUES ({", ".join(f"${n}" for n in range(1, len(ApplicationRow.__struct_fields__) + 1))})
ON CONFLICT DO NOTHING RETURNING *
"""
_UPSERT_PARTY = f"""
INSERT INTO related_party_application ({_PARTY_COLUMNS})
VALUES ({", ".join(f"${n}" for n in range(1, len(RelatedPartyRow.__struct_fields__) + 1))})
ON CONFLICT (customer_id, application_id, related_party_id) DO UPDATE
   SET content = excluded.content, updated_at = excluded.updated_at RETURNING *
"""
_PARTIES = f"""
SELECT {_PARTY_COLUMNS} FROM related_party_application
 WHERE customer_id = ANY($1::uuid[]) AND application_id = ANY($2::uuid[]) ORDER BY created_at, written_no
"""
_DELETE_PARTY = """
DELETE FROM related_party_application WHERE customer_id = $1 AND application_id = $2 AND related_party_id = $3
"""
_ADD_MOVE = """
INSERT INTO application_move (customer_id, move_id, application_id, move_no, status, moved_at)
VALUES ($1, $2, $3, $4, $5, $6) RETURNING *
"""
_MOVES = """
SELECT customer_id, move_id, application_id, move_no, status, moved_at FROM application_move
 WHERE customer_id = $1 AND application_id = $2 ORDER BY move_no
"""
_MOVE = """
SELECT customer_id, move_id, application_id, move_no, status, moved_at FROM application_move WHERE move_id = $1
"""


_MEMBER_COLUMNS = ", ".join(AwaitedMemberRow.__struct_fields__)
_ADD_MEMBER = f"INSERT INTO awaited_team_member ({_MEMBER_COLUMNS}) VALUES ($1, $2, $3, $4, $5) RETURNING *"
_MEMBERS = f"""
SELECT {_MEMBER_COLUMNS} FROM awaited_team_member
 WHERE customer_id = $1 AND application_id = $2 ORDER BY created_at, written_no
"""
_DROP_MEMBERS = "DELETE FROM awaited_team_member WHERE customer_id = $1 AND application_id = $2 RETURNING member_id"


def _as(struct: type[RowType], row: Record) -> RowType:
    return msgspec.convert({name: row[name] for name in struct.__struct_fields__}, struct)


def _row(record: Record) -> ApplicationRow:
    return _as(ApplicationRow, record)


APPLICATIONS = KeysetList(
    f"""
SELECT {_COLUMNS}, written_no FROM application
 WHERE customer_id = $1 AND kind = $2 AND ($3::text[] IS NULL OR status = ANY($3)) AND {{page}}
""",
    _row,
    **BY_CREATION,
)
"""The applications of one kind that a customer made, of some statuses, newest first."""


async def get_application(conn: Connection | Pool, owner: UUID, application_id: UUID) -> ApplicationRow:
    """Return an application of its owner. Raises NotFound."""
    found = await conn.fetchrow(_BY_ID, owner, application_id)
    if found is None:
        raise NotFound("There is no such application.")
    return _row(found)


async def lock_application(conn: Connection, owner: UUID, application_id: UUID) -> ApplicationRow:
    """Return an application, which nobody else changes until the transaction ends. Raises NotFound."""
    found = await conn.fetchrow(f"{_BY_ID} FOR UPDATE", owner, application_id)
    if found is None:
        raise NotFound("There is no such application.")
    return _row(found)


async def find_by_applicant(conn: Connection | Pool, applicant_id: UUID) -> ApplicationRow | None:
    """Return the application that a customer comes from, or None."""
    found = await conn.fetchrow(_BY_APPLICANT, applicant_id)
    return None if found is None else _row(found)


async def get_partner_application(conn: Connection | Pool, partner_id: UUID, application_id: UUID) -> ApplicationRow:
    """Return an application that a partner, or a customer of it, made. Raises NotFound."""
    found = await conn.fetchrow(_OF_PARTNER, partner_id, application_id)
    if found is None:
        raise NotFound("There is no such application.")
    return _row(found)


async def list_by_id(conn: Connection | Pool, application_id: UUID) -> list[ApplicationRow]:
    """Return the applications of this id, of whoever: two owners may have chosen the same."""
    return [_row(each) for each in await conn.fetch(_ANY_BY_ID, application_id)]


async def list_in_review(conn: Connection | Pool, limit: int) -> list[ApplicationRow]:
    """Return the applications that wait for an operator, the one submitted first before the others."""
    return [_row(each) for each in await conn.fetch(_IN_REVIEW, limit)]


async def list_all(conn: Connection | Pool, statuses: Sequence[str] | None, limit: int) -> list[ApplicationRow]:
    """Return applications of all owners, newest first."""
    return [_row(each) for each in await conn.fetch(_ANY, statuses, limit)]


async def add_application(action: AuditedAction, row: ApplicationRow) -> bool:
    """Add an application; tell whether its owner had none of this id."""
    written = await action.conn.fetchrow(_INSERT, *msgspec.structs.astuple(row))
    if written is not None:
        _prove(action, "application", row.application_id, written)
    return written is not None


async def update_application(action: AuditedAction, row: ApplicationRow, **changes: Any) -> ApplicationRow:
    """Change columns of an application that is locked; return it as it is then."""
    sets = ", ".join(f"{name} = ${number}" for number, name in enumerate(changes, 3))
    sql = f"UPDATE application SET {sets} WHERE customer_id = $1 AND application_id = $2 RETURNING *"
    written = await action.conn.fetchrow(sql, row.customer_id, row.application_id, *changes.values())
    return _row(_prove(action, "application", row.application_id, written))


async def move_application(
    action: AuditedAction, row: ApplicationRow, status: ApplicationStatus, *, at: datetime, **changes: Any
) -> ApplicationRow:
    """Give a locked application another status, and write down the move."""
    moved = await update_application(action, row, status=status, move_no=row.move_no + 1, updated_at=at, **changes)
    values = (row.customer_id, moved.move_id, row.application_id, moved.move_no, status, at)
    written = await action.conn.fetchrow(_ADD_MOVE, *values)
    _prove(action, "application_move", moved.move_id, written)
    return moved


async def find_move(conn: Connection | Pool, move_id: UUID) -> MoveRow | None:
    """Return a move of any application, or None."""
    found = await conn.fetchrow(_MOVE, move_id)
    return None if found is None else _as(MoveRow, found)


async def list_moves(conn: Connection | Pool, row: ApplicationRow) -> list[MoveRow]:
    """Return the moves of an application, the first one first."""
    return [_as(MoveRow, each) for each in await conn.fetch(_MOVES, row.customer_id, row.application_id)]


async def list_related_parties(
    conn: Connection | Pool, owners: Sequence[UUID], application_ids: Sequence[UUID]
) -> list[RelatedPartyRow]:
    """Return the related parties of applications of these owners, in the order in which they were added."""
    return [_as(RelatedPartyRow, each) for each in await conn.fetch(_PARTIES, owners, application_ids)]


async def put_related_party(action: AuditedAction, row: RelatedPartyRow) -> None:
    """Add a related party, or change it."""
    written = await action.conn.fetchrow(_UPSERT_PARTY, *msgspec.structs.astuple(row))
    _prove(action, "related_party_application", row.related_party_id, written)


async def delete_related_party(action: AuditedAction, row: ApplicationRow, related_party_id: UUID) -> None:
    """Remove a related party."""
    await action.conn.execute(_DELETE_PARTY, row.customer_id, row.application_id, related_party_id)
    action.proves("related_party_application", f"{row.application_id}/{related_party_id}", None)


async def list_awaited_members(conn: Connection | Pool, row: ApplicationRow) -> list[AwaitedMemberRow]:
    """Return who is invited with the approval, in the order in which they were named."""
    return [_as(AwaitedMemberRow, each) for each in await conn.fetch(_MEMBERS, row.customer_id, row.application_id)]


async def add_awaited_member(action: AuditedAction, row: AwaitedMemberRow) -> None:
    """Add somebody who is invited with the approval."""
    written = await action.conn.fetchrow(_ADD_MEMBER, *msgspec.structs.astuple(row))
    _prove(action, "awaited_team_member", row.member_id, written)


async def drop_awaited_members(action: AuditedAction, row: ApplicationRow) -> bool:
    """Wait for nobody any longer; tell whether anybody was waited for."""
    found = await action.conn.fetch(_DROP_MEMBERS, row.customer_id, row.application_id)
    for each in found:
        action.proves("awaited_team_member", each["member_id"], None)
    return bool(found)


def _prove(action: AuditedAction, table: str, row_id: UUID, written: Record | None) -> Record:
    assert written is not None
    key = f"{written['application_id']}/{row_id}" if table == "related_party_application" else row_id
    action.proves(table, key, proof_of(written, written.keys()))
    return written
