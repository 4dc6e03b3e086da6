"""A hit is cleared by two operators, or confirmed by one."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from uuid import UUID

import msgspec

from billfold.audit import record as audit_record
from billfold.audit.record import AuditedAction
from billfold.identity.operators import Operator
from billfold.ledger import scheduler as jobs_store
from billfold.ledger.bank import Bank
from billfold.ledger.scheduler import bank_customer_id
from billfold.ledger.types import Origin, ScheduledJob
from billfold.platform.clock import wall_now
from billfold.platform.errors import Refused
from billfold.screening import hits
from billfold.screening.types import DECIDED_JOB, HitRow, HitStatus, Note

CLEARERS: int = 2


async def clear_hit(bank: Bank, hit_id: UUID, *, operator: str, note: str, now: datetime) -> HitRow:
    """Say that it is somebody else; the second operator who says so clears it. `now` is business time.

    Raises NotFound, Refused `sanctions-hit-decided`, `same-operator`.
    """
    async with _deciding(bank, hit_id, "cleared", operator=operator) as (action, row):
        if any(Operator.are_same(operator, each) for each in row.cleared_by):
            raise Refused("same-operator", f"{operator} has cleared the hit before; another operator clears it too.")
        cleared_by = [*row.cleared_by, operator]
        is_cleared = len(cleared_by) == CLEARERS
        if is_cleared:
            await jobs_store.schedule(action.conn, [ScheduledJob(DECIDED_JOB, hit_id, None, now)])
        return await hits.update_hit(
            action,
            hit_id,
            cleared_by=cleared_by,
            status=HitStatus.CLEARED if is_cleared else HitStatus.OPEN,
            decided_at=now if is_cleared else None,
            content=await _with_note(bank, action, row, Note(operator=operator, text=note, at=now)),
        )


async def confirm_hit(bank: Bank, hit_id: UUID, *, operator: str, note: str, now: datetime) -> HitRow:
    """Say that it is who is listed; what follows is done by the worker. `now` is business time.

    Raises NotFound, Refused `sanctions-hit-decided`.
    """
    async with _deciding(bank, hit_id, "confirmed", operator=operator) as (action, row):
        await jobs_store.schedule(action.conn, [ScheduledJob(DECIDED_JOB, hit_id, None, now)])
        return await hits.update_hit(
            action,
            hit_id,
            status=HitStatus.CONFIRMED,
            confirmed_by=operator,
            decided_at=now,
            content=await _with_note(bank, action, row, Note(operator=operator, text=note, at=now)),
        )


@asynccontextmanager
async def _deciding(
    bank: Bank, hit_id: UUID, verb: str, *, operator: str
) -> AsyncIterator[tuple[AuditedAction, HitRow]]:
    """Open the transaction of a decision of an open hit, and its entry in the bank's audit log."""
    async with audit_record.audited(
        bank.pool,
        bank.vault,
        bank_customer_id(bank.seed),
        origin=Origin(kind="OPERATOR", name=operator),
        action=f"sanctions_hit.{verb}",
        resource=("sanctions_hit", hit_id),
        now=wall_now(),
    ) as action:
        row = await hits.lock_hit(action.conn, hit_id)
        if row.status != HitStatus.OPEN:
            raise Refused("sanctions-hit-decided", f"The hit is {row.status}.")
        yield action, row


async def _with_note(bank: Bank, action: AuditedAction, row: HitRow, note: Note) -> bytes:
    content = await hits.open_content(action.conn, bank, row)
    noted = msgspec.structs.replace(content, notes=(*content.notes, note))
    return await hits.seal_content(action.conn, bank, row.owner_id, row.hit_id, content=noted)
