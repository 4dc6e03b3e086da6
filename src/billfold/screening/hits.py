"""Hits on a sanctions list: rows, and their decisions. Two operators clear a hit; one confirms it."""

from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from uuid import UUID

import msgspec

from billfold.audit import record
from billfold.audit.record import AuditedAction, AuditedTable
from billfold.data_keys.keys import DataKeys, DataShredded
from billfold.identity.operators import Operator
from billfold.ledger import scheduler
from billfold.ledger.bank import Bank
from billfold.ledger.types import Origin, ScheduledJob
from billfold.platform.crypto import associated_data
from billfold.platform.database.connection import Connection, Db
from billfold.platform.database.rows import References
from billfold.platform.dates import format_eastern
from billfold.platform.errors import Refused
from billfold.screening import store
from billfold.screening.types import DECIDED_JOB, HitContent, HitRow, HitStatus, ListEntry, Note

_hits = AuditedTable(HitRow, "sanctions_hit", key=("hit_id",), noun="hit")
_KNOWN = "SELECT hit_id FROM sanctions_hit WHERE hit_id = ANY($1)"
_LIST = f"{_hits.select} WHERE $1::text IS NULL OR status = $1 ORDER BY found_at DESC, hit_id LIMIT $2"
_OPEN = f"""{_hits.select} WHERE status = 'OPEN'
   AND NOT EXISTS (SELECT 1 FROM data_key WHERE subject_id = owner_id AND wrapped IS NULL)
 ORDER BY found_at, hit_id LIMIT $1
"""
_STANDING = """
SELECT owner_id, CASE WHEN bool_or(status = 'CONFIRMED') THEN 'CONFIRMED' ELSE 'OPEN' END AS status
  FROM sanctions_hit WHERE owner_id = ANY($1) AND subject_kind <> 'COUNTERPARTY' AND status <> 'CLEARED'
 GROUP BY owner_id
"""
_STANDING_OF_COUNTERPARTIES = """
SELECT subject_id, CASE WHEN bool_or(status = 'CONFIRMED') THEN 'CONFIRMED' ELSE 'OPEN' END
  FROM sanctions_hit
 WHERE owner_id = ANY($1) AND subject_id = ANY($2) AND subject_kind = 'COUNTERPARTY' AND status <> 'CLEARED'
 GROUP BY subject_id
"""


async def find_standing(conn: Db, owner_id: UUID) -> HitStatus | None:
    """Return the worst status of the hits of an owner and its related parties; None if all are cleared."""
    row = await conn.fetchrow(_STANDING, [owner_id])
    return None if row is None else HitStatus(row["status"])


async def find_standing_of_customers(conn: Connection, customer_ids: Sequence[UUID], ids: Sequence[UUID]) -> References:
    """Return the worst status of the hits of customers, by customer id, for flows."""
    del ids
    return [(owner_id, owner_id, HitStatus(status)) for owner_id, status in await conn.fetch(_STANDING, customer_ids)]


async def list_standing(
    conn: Db, owner_ids: Collection[UUID], counterparty_ids: Collection[UUID]
) -> dict[UUID, HitStatus]:
    """Return the worst status of the hits of counterparties that have one that is not cleared."""
    rows = await conn.fetch(_STANDING_OF_COUNTERPARTIES, owner_ids, counterparty_ids)
    return {subject_id: HitStatus(status) for subject_id, status in rows}


async def list_known(conn: Db, hit_ids: Sequence[UUID]) -> set[UUID]:
    """Return the ids that belong to existing hits."""
    return {each["hit_id"] for each in await conn.fetch(_KNOWN, hit_ids)}


async def list_hits(conn: Db, status: str | None, limit: int) -> list[HitRow]:
    """Return hits of a status or of all, newest first."""
    return await _hits.all(conn, _LIST, status, limit)


async def list_open(conn: Db, limit: int) -> list[HitRow]:
    """Return undecided hits, oldest first, without those that were destroyed with their owner's key."""
    return await _hits.all(conn, _OPEN, limit)


get_hit = _hits.get
lock_hit = _hits.lock
add_hit = _hits.add
update_hit = _hits.change


async def seal_content(conn: Db, bank: Bank, owner_id: UUID, hit_id: UUID, *, content: HitContent) -> bytes:
    """Return the content of a hit, sealed with its owner's key."""
    return await bank.ports[DataKeys].seal(conn, owner_id, msgspec.json.encode(content), aad=_place(owner_id, hit_id))


async def open_content(conn: Db, bank: Bank, row: HitRow) -> HitContent:
    """Return the decrypted content of a hit."""
    plain = await bank.ports[DataKeys].open(conn, row.owner_id, row.content, aad=_place(row.owner_id, row.hit_id))
    return msgspec.json.decode(plain, type=HitContent)


def _place(owner_id: UUID, hit_id: UUID) -> bytes:
    return associated_data("sanctions_hit", "content", hit_id, tenant_id=owner_id)


async def describe_hit(bank: Bank, row: HitRow) -> list[str]:
    """Return the screened name, the listed name it resembles and why, and the operators' notes, one line each."""
    try:
        content = await open_content(bank.pool, bank, row)
    except DataShredded:
        return [f"{row.subject_kind} {row.subject_id} of {row.owner_id} is {row.status}; what it says was destroyed"]
    match, entry = content.match, await store.find_entry(bank.pool, row.entry_uid)
    words = ", ".join(f"{each.given} as {each.listed} ({each.score})" for each in match.words)
    return [
        f"{row.subject_kind} {row.subject_id} of {row.owner_id} is {row.status}",
        f"{content.screened.name} scores {row.score} against {match.listed_name} {match.name_kind}".strip(),
        f"words: {words}",
        *(f"{what}: {points:+}" for what, points in match.evidence.items()),
        *(f"{format_eastern(each.at)} {each.operator}: {each.text}" for each in content.notes),
        *(_entry_lines(entry) if entry else (f"entry {row.entry_uid} is no longer on the list",)),
    ]


def _entry_lines(entry: ListEntry) -> list[str]:
    return [
        f"entry {entry.uid}: {entry.kind}, {', '.join(entry.programs)}",
        *(f"name {each.text} {each.kind}{' (weak)' if each.is_weak else ''}".strip() for each in entry.names),
        *(f"born {each.on or f'{each.from_year} to {each.to_year}'}" for each in entry.births),
        *(f"country {each}" for each in entry.countries),
        *(f"document {each}" for each in entry.ids),
        *([entry.remarks] if entry.remarks else []),
    ]


CLEARERS: int = 2


async def clear_hit(bank: Bank, hit_id: UUID, *, operator: str, note: str, now: datetime) -> HitRow:
    """Clear a hit as a false match, which takes two operators. `now` is business time.

    Raises NotFound, Refused `sanctions-hit-decided`, `same-operator`.
    """
    async with _open_decision(bank, hit_id, "cleared", operator=operator) as (action, row):
        if any(Operator.are_same(operator, each) for each in row.cleared_by):
            raise Refused("same-operator", f"{operator} has cleared the hit before; another operator clears it too.")
        cleared_by = [*row.cleared_by, operator]
        is_cleared = len(cleared_by) == CLEARERS
        if is_cleared:
            await scheduler.schedule(action.conn, [ScheduledJob(DECIDED_JOB, hit_id, None, now)])
        return await update_hit(
            action,
            hit_id,
            cleared_by=cleared_by,
            status=HitStatus.CLEARED if is_cleared else HitStatus.OPEN,
            decided_at=now if is_cleared else None,
            content=await _with_note(bank, action, row, Note(operator=operator, text=note, at=now)),
        )


async def confirm_hit(bank: Bank, hit_id: UUID, *, operator: str, note: str, now: datetime) -> HitRow:
    """Confirm that the hit is the listed party; the worker does what follows. `now` is business time.

    Raises NotFound, Refused `sanctions-hit-decided`.
    """
    async with _open_decision(bank, hit_id, "confirmed", operator=operator) as (action, row):
        await scheduler.schedule(action.conn, [ScheduledJob(DECIDED_JOB, hit_id, None, now)])
        return await update_hit(
            action,
            hit_id,
            status=HitStatus.CONFIRMED,
            confirmed_by=operator,
            decided_at=now,
            content=await _with_note(bank, action, row, Note(operator=operator, text=note, at=now)),
        )


@asynccontextmanager
async def _open_decision(
    bank: Bank, hit_id: UUID, verb: str, *, operator: str
) -> AsyncIterator[tuple[AuditedAction, HitRow]]:
    """Open the transaction of a decision about an open hit, with its entry in the bank's audit log."""
    async with record.audited(
        bank,
        bank.own_id,
        Origin(kind="OPERATOR", name=operator),
        f"sanctions_hit.{verb}",
        resource_id=hit_id,
    ) as action:
        row = await lock_hit(action.conn, hit_id)
        if row.status != HitStatus.OPEN:
            raise Refused("sanctions-hit-decided", f"The hit is {row.status}.")
        yield action, row


async def _with_note(bank: Bank, action: AuditedAction, row: HitRow, note: Note) -> bytes:
    content = await open_content(action.conn, bank, row)
    noted = msgspec.structs.replace(content, notes=(*content.notes, note))
    return await seal_content(action.conn, bank, row.owner_id, row.hit_id, content=noted)
