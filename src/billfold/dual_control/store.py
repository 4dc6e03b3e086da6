"""Rows of proposals. Each write leaves the fingerprint of its row in the bank's audit log."""

from typing import Any
from uuid import UUID

import msgspec
from asyncpg import Record

from billfold.audit.record import AuditedAction
from billfold.dual_control.types import Freeze, FreezeProposal, FreezeSubject
from billfold.platform.database.connection import Connection, Pool
from billfold.platform.database.paging import KeysetList
from billfold.platform.database.rows import proof_of
from billfold.platform.errors import NotFound

_TABLE = "freeze_proposal"
_IS_FROZEN = {
    FreezeSubject.CUSTOMER: "SELECT account_status = 'FROZEN' FROM customer WHERE customer_id = $1 AND $2 = $1",
    FreezeSubject.POCKET: "SELECT status = 'FROZEN' FROM pocket WHERE customer_id = $1 AND pocket_id = $2",
    FreezeSubject.CARD: "SELECT status = 'FROZEN' FROM card WHERE customer_id = $1 AND card_id = $2",
}
# What froze it last, by an index of such entries: of what is audited only a change of its status freezes a Pocket.
_FREEZE = """
SELECT entry_no, actor_name, recorded_at, details->>'reason' FROM audit_entry
 WHERE customer_id = $1 AND resource_type = $2 AND resource_id = $3::uuid::text
   AND outcome = 'SUCCESS' AND (action IN ('customer.frozen', 'pocket.frozen', 'card.frozen')
                                OR action = 'pocket.updated' AND details->>'status' = 'FROZEN')
 ORDER BY entry_no DESC LIMIT 1
"""
_CARRIED_OUT = "SELECT true FROM command WHERE customer_id = $1 AND command_id = $2"
_FIELDS = FreezeProposal.__struct_fields__
_COLUMNS = ", ".join(_FIELDS)
_INSERT = f"""
INSERT INTO freeze_proposal ({_COLUMNS}) VALUES ({", ".join(f"${n}" for n in range(1, len(_FIELDS) + 1))})
ON CONFLICT DO NOTHING RETURNING *
"""
_ONE = f"SELECT {_COLUMNS} FROM freeze_proposal WHERE proposal_id = $1"
_CONFIRMED = f"""
SELECT {_COLUMNS} FROM freeze_proposal WHERE subject_id = $1 AND status IN ('CONFIRMED', 'APPLIED')
 ORDER BY decided_at DESC LIMIT 1
"""
_OPEN = f"SELECT {_COLUMNS} FROM freeze_proposal WHERE subject_id = $1 AND status = 'PROPOSED' FOR UPDATE"


def _row(record: Record) -> FreezeProposal:
    return msgspec.convert({name: record[name] for name in _FIELDS}, FreezeProposal)


# What is open first: what nobody decides on does not vanish behind what was decided later.
PROPOSALS = KeysetList(
    f"""SELECT * FROM (SELECT {_COLUMNS}, status IN ('PROPOSED', 'CONFIRMED') AS is_open FROM freeze_proposal) p
 WHERE customer_id = $1 AND {{page}}""",
    _row,
    is_open="boolean",
    proposed_at="timestamptz",
    proposal_id="uuid",
)
"""The proposals of the bank ($1), those that are open before all others, each of both the newest first."""


async def add_proposal(action: AuditedAction, row: FreezeProposal) -> bool:
    """Add a proposal; False when another about the same is open."""
    written = await action.conn.fetchrow(_INSERT, *msgspec.structs.astuple(row))
    if written is not None:
        action.proves(_TABLE, row.proposal_id, proof_of(written, written.keys()))
    return written is not None


async def update_proposal(action: AuditedAction, proposal_id: UUID, **changes: Any) -> FreezeProposal:
    """Change columns of a proposal that is locked; return it as it is then."""
    sets = ", ".join(f"{name} = ${number}" for number, name in enumerate(changes, 2))
    sql = f"UPDATE freeze_proposal SET {sets} WHERE proposal_id = $1 RETURNING *"
    written = await action.conn.fetchrow(sql, proposal_id, *changes.values())
    assert written is not None
    action.proves(_TABLE, proposal_id, proof_of(written, written.keys()))
    return _row(written)


async def lock_proposal(conn: Connection, proposal_id: UUID) -> FreezeProposal:
    """Return a proposal, which nobody else decides until the transaction ends. Raises NotFound."""
    return _found(await conn.fetchrow(f"{_ONE} FOR UPDATE", proposal_id))


async def lock_open_proposal(conn: Connection, subject_id: UUID) -> FreezeProposal | None:
    """Return what is proposed about something and not confirmed yet, as `lock_proposal`."""
    record = await conn.fetchrow(_OPEN, subject_id)
    return None if record is None else _row(record)


async def get_proposal(conn: Connection | Pool, proposal_id: UUID) -> FreezeProposal:
    """Return a proposal. Raises NotFound."""
    return _found(await conn.fetchrow(_ONE, proposal_id))


async def find_confirmed(conn: Connection | Pool, subject_id: UUID) -> FreezeProposal | None:
    """Return what was decided about something last."""
    record = await conn.fetchrow(_CONFIRMED, subject_id)
    return None if record is None else _row(record)


async def is_frozen(conn: Connection | Pool, row: FreezeProposal) -> bool:
    """Return whether what a proposal is about is frozen now."""
    return (
        row.subject is not None and await conn.fetchval(_IS_FROZEN[row.subject], row.owner_id, row.subject_id) is True
    )


async def is_carried_out(conn: Connection | Pool, owner_id: UUID, command_id: UUID) -> bool:
    """Return whether the command of a proposal is in the ledger, accepted or not."""
    return await conn.fetchval(_CARRIED_OUT, owner_id, command_id) is True


async def find_freeze(conn: Connection | Pool, row: FreezeProposal) -> Freeze | None:
    """Return the newest freeze of what a proposal is about, whether it has ended or not."""
    found = await conn.fetchrow(_FREEZE, row.owner_id, row.subject and row.subject.lower(), row.subject_id)
    return None if found is None else Freeze(*found)


def _found(record: Record | None) -> FreezeProposal:
    if record is None:
        raise NotFound("There is no such proposal.")
    return _row(record)
