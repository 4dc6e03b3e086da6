"""Proposals of freezes and movements of money, as stored."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple
from uuid import UUID

import msgspec

from billfold.audit.record import AuditedTable
from billfold.identity.operators import Power
from billfold.platform.database.connection import Connection, Db
from billfold.platform.database.paging import KeysetList

REASON_CHARS_MAX = 500
PROPOSAL_LIFETIME = timedelta(days=7)
"""A proposal can be confirmed for this long: it spans a weekend with a holiday."""


class FreezeSubject(StrEnum):
    """Kinds of things that can be frozen."""

    CUSTOMER = "CUSTOMER"
    POCKET = "POCKET"
    CARD = "CARD"


class ProposalStatus(StrEnum):
    """CONFIRMED until the bank has carried it out; REFUSED when a rule refused it."""

    PROPOSED = "PROPOSED"
    CONFIRMED = "CONFIRMED"
    APPLIED = "APPLIED"
    REFUSED = "REFUSED"
    WITHDRAWN = "WITHDRAWN"


class Freeze(NamedTuple):
    """A freeze: who froze it, when (wall time) and why, from the entry in its owner's audit log."""

    entry_no: int
    actor_name: str
    recorded_at: datetime
    reason: str | None


class Movement(msgspec.Struct, frozen=True):
    """A command that moves money, by its class name, and its description in words."""

    words: str
    kind: str
    command: msgspec.Raw


class FreezeProposal(msgspec.Struct, frozen=True, kw_only=True):
    """A proposal as stored; `freezes` is False if it ends a freeze or moves money. Business time.

    `customer_id` is the bank itself, whose audit log proves the row; `owner_id` is the customer it concerns.
    `movement` is a `Movement` as JSON; such a proposal has no `subject`, and `subject_id` is the id it is about.
    `ends_entry_no` identifies the freeze that it ends: the entry of the owner's audit log with who froze it, and why.
    """

    proposal_id: UUID
    customer_id: UUID
    owner_id: UUID
    subject: FreezeSubject | None
    subject_id: UUID
    freezes: bool
    reason: str
    status: ProposalStatus
    proposed_by: str
    proposed_at: datetime
    decided_by: str | None
    decided_at: datetime | None
    ends_entry_no: int | None = None
    movement: str | None = None

    @property
    def is_open(self) -> bool:
        """Return whether the proposal is still to be decided or carried out."""
        return self.status in {ProposalStatus.PROPOSED, ProposalStatus.CONFIRMED}

    @property
    def is_ending(self) -> bool:
        """Return whether it is open and ends a freeze."""
        return self.is_open and self.movement is None and not self.freezes

    def is_too_old(self, now: datetime) -> bool:
        """Return whether the proposal can no longer be confirmed."""
        return self.status == ProposalStatus.PROPOSED and now - self.proposed_at > PROPOSAL_LIFETIME

    @property
    def words(self) -> str:
        """Description of the proposal in words."""
        if self.subject is None:
            return self.read_movement().words
        return f"{'Freeze' if self.freezes else 'Unfreeze'} {self.subject.lower()} {self.subject_id}"

    @property
    def resource(self) -> str:
        """Resource type in the bank's audit log."""
        return "freeze" if self.movement is None else "movement"

    @property
    def power(self) -> Power:
        """Power that the proposer needs."""
        return Power.PROPOSE if self.movement is None else Power.MOVE_MONEY

    def read_movement(self) -> Movement:
        """Return the movement of a proposal that moves money."""
        return msgspec.json.decode(self.movement or "", type=Movement)


_SUBJECT_NAMES = """
SELECT customer_id, name FROM customer WHERE customer_id = ANY($1::uuid[])
 UNION ALL
SELECT pocket_id, name FROM pocket WHERE customer_id = ANY($1::uuid[]) AND pocket_id = ANY($2::uuid[])
 UNION ALL
SELECT card_id, 'ending ' || last_four FROM card WHERE customer_id = ANY($1::uuid[]) AND card_id = ANY($2::uuid[])
"""
_IS_FROZEN = {
    FreezeSubject.CUSTOMER: "SELECT account_status = 'FROZEN' FROM customer WHERE customer_id = $1 AND $2 = $1",
    FreezeSubject.POCKET: "SELECT status = 'FROZEN' FROM pocket WHERE customer_id = $1 AND pocket_id = $2",
    FreezeSubject.CARD: "SELECT status = 'FROZEN' FROM card WHERE customer_id = $1 AND card_id = $2",
}
# The last freeze, by the index of such entries: of all audited changes only a change of status freezes a Pocket.
_FREEZE = """
SELECT entry_no, actor_name, recorded_at, details->>'reason' FROM audit_entry
 WHERE customer_id = $1 AND resource_type = $2 AND resource_id = $3::uuid::text
   AND outcome = 'SUCCESS' AND (action IN ('customer.frozen', 'pocket.frozen', 'card.frozen')
                                OR action = 'pocket.updated' AND details->>'status' = 'FROZEN')
 ORDER BY entry_no DESC LIMIT 1
"""
_CARRIED_OUT = "SELECT true FROM command WHERE customer_id = $1 AND command_id = $2"
_proposals = AuditedTable(FreezeProposal, "freeze_proposal", key=("proposal_id",), noun="proposal")
_CONFIRMED = f"""{_proposals.select} WHERE subject_id = $1 AND status IN ('CONFIRMED', 'APPLIED')
 ORDER BY decided_at DESC LIMIT 1
"""
_OPEN = f"{_proposals.select} WHERE subject_id = $1 AND status = 'PROPOSED' FOR UPDATE"
_ABOUT = f"{_proposals.select} WHERE owner_id = $1 AND subject_id = $2 ORDER BY proposed_at DESC LIMIT $3"


# Open ones first, so that undecided proposals are not buried under later decisions.
PROPOSALS = KeysetList(
    f"""SELECT * FROM (SELECT {_proposals.columns()}, status IN ('PROPOSED', 'CONFIRMED') AS is_open
                         FROM freeze_proposal) p
 WHERE customer_id = $1 AND {{page}}""",
    _proposals.read,
    is_open="boolean",
    proposed_at="timestamptz",
    proposal_id="uuid",
)
"""The proposals of the bank ($1): open ones first, then the rest, each newest first."""


get_proposal = _proposals.get
lock_proposal = _proposals.lock
add_proposal = _proposals.add  # False when another about the same is open
update_proposal = _proposals.change


async def lock_open_proposal(conn: Connection, subject_id: UUID) -> FreezeProposal | None:
    """Return the open proposal about something, locked as by `lock_proposal`."""
    return await _proposals.first(conn, _OPEN, subject_id)


async def find_confirmed(conn: Db, subject_id: UUID) -> FreezeProposal | None:
    """Return the last confirmed proposal about something."""
    return await _proposals.first(conn, _CONFIRMED, subject_id)


async def name_subjects(conn: Db, owner_ids: Iterable[UUID], subject_ids: Iterable[UUID]) -> dict[UUID, str]:
    """Return the names of customers, and of their Pockets and cards among the ids."""
    return {row[0]: row[1] for row in await conn.fetch(_SUBJECT_NAMES, list(owner_ids), list(subject_ids))}


async def list_about(conn: Db, owner_id: UUID, subject_id: UUID, *, limit: int) -> list[FreezeProposal]:
    """Return the proposals about something of a customer, the newest first."""
    return await _proposals.all(conn, _ABOUT, owner_id, subject_id, limit)


async def is_frozen(conn: Db, row: FreezeProposal) -> bool:
    """Return whether the subject of a proposal is frozen now."""
    return (
        row.subject is not None and await conn.fetchval(_IS_FROZEN[row.subject], row.owner_id, row.subject_id) is True
    )


async def is_carried_out(conn: Db, owner_id: UUID, command_id: UUID) -> bool:
    """Return whether the command of a proposal is in the ledger, accepted or not."""
    return await conn.fetchval(_CARRIED_OUT, owner_id, command_id) is True


async def find_freeze(conn: Db, row: FreezeProposal) -> Freeze | None:
    """Return the newest freeze of a proposal's subject, whether it has ended or not."""
    found = await conn.fetchrow(_FREEZE, row.owner_id, row.subject and row.subject.lower(), row.subject_id)
    return None if found is None else Freeze(*found)
