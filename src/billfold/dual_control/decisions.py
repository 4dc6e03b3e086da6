"""Proposing a freeze or a movement of money, confirming or withdrawing it: who may, and what follows.

A confirmed proposal is carried out by a command whose key is the proposal's id, so that it counts once; after a crash
it can be confirmed again. If the subject was frozen again in between, that newer freeze is not ended.
"""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

import msgspec

from billfold.accounts.customers.commands import SetCustomerState
from billfold.accounts.pockets.commands import SetPocketState
from billfold.audit.record import AuditedAction, audited
from billfold.dual_control import store
from billfold.dual_control.store import (
    PROPOSAL_LIFETIME,
    REASON_CHARS_MAX,
    FreezeProposal,
    FreezeSubject,
    ProposalStatus,
    update_proposal,
)
from billfold.identity.operators import POWERS, Operator, Power
from billfold.identity.users.store import list_user_memberships
from billfold.ledger.bank import Bank
from billfold.ledger.commands import Command, Outcome
from billfold.ledger.customers import CustomerStatus
from billfold.ledger.dry_run import dry_run
from billfold.ledger.types import Origin, PocketStatus
from billfold.platform import ids
from billfold.platform.database.connection import Connection
from billfold.platform.errors import InvalidInput, NotFound, Refused
from billfold.platform.ids import command_id

Carrier = Callable[[Bank, FreezeProposal, Command], Awaitable[Outcome]]
"""Submits the command of a proposal, with its side effects. May be called again for the same proposal."""


@dataclass(frozen=True)
class Movements:
    """The commands that can be proposed; `carriers` maps base classes that need more than submission."""

    kinds: frozenset[type[Command]]
    carriers: Mapping[type[Command], Carrier]
    freeze_card: Callable[..., Command]

    def read_command(self, row: FreezeProposal) -> Command:
        """Return the command of a proposal that moves money, exactly as it was proposed."""
        movement = row.read_movement()
        kind = next(each for each in self.kinds if movement.kind in each.names())
        return msgspec.json.decode(movement.command, type=kind)

    async def carry_out(self, bank: Bank, row: FreezeProposal, command: Command) -> Outcome:
        """Carry out a confirmed proposal; return its outcome. Raises NotFound and Refused, as the rule does."""
        for base, carrier in self.carriers.items():
            if isinstance(command, base):
                return await carrier(bank, row, command)
        return (await bank.engine.submit(command)).outcome


_CALLER = "operator"


class Confirmed(NamedTuple):
    """A proposal that was carried out, and the outcome of its command."""

    proposal: FreezeProposal
    outcome: Outcome


async def propose(
    bank: Bank, subject: FreezeSubject, subject_id: UUID, *, freezes: bool, reason: str, by: Operator
) -> FreezeProposal:
    """Propose to freeze something, or to end its current freeze.

    An earlier proposal about it that can no longer be confirmed is withdrawn.

    Raises NotFound, InvalidInput, Refused `proposal-open`, `freeze-changes-nothing`.
    """
    by.require(Power.PROPOSE)
    what: dict[str, Any] = {"owner_id": await _subject_owner(bank, subject, subject_id), "subject": subject}
    return await _propose(bank, by, reason, what | {"subject_id": subject_id, "freezes": freezes})


async def propose_movement(
    bank: Bank, command: Command, *, about: UUID, words: str, reason: str, by: Operator
) -> FreezeProposal:
    """Propose one of the `Movements`, a command that moves money: it is submitted when another operator confirms it.

    `about` is the subject, which can have one open proposal. A movement that the rules refuse now is not proposed.

    Raises NotFound, InvalidInput, Refused `proposal-open`, `movement-made`, and what the rule refuses.
    """
    by.require(Power.MOVE_MONEY)
    assert type(command) in bank.ports[Movements].kinds
    async with bank.pool.acquire() as conn:
        await _require_not_made(conn, command)
        await dry_run(conn, bank, command)
    movement = store.Movement(words, type(command).__name__, msgspec.Raw(msgspec.json.encode(command)))
    what: dict[str, Any] = {"owner_id": command.customers[0], "subject": None, "subject_id": about, "freezes": False}
    return await _propose(bank, by, reason, what | {"movement": msgspec.json.encode(movement).decode()})


async def _propose(bank: Bank, by: Operator, reason: str, what: dict[str, Any]) -> FreezeProposal:
    if not (1 <= len(reason.strip()) <= REASON_CHARS_MAX and reason.isprintable()):
        raise InvalidInput.at("reason", msg=f"must be 1 to {REASON_CHARS_MAX} printable characters")
    proposal = FreezeProposal(
        proposal_id=ids.new(),
        customer_id=bank.own_id,
        reason=reason.strip(),
        status=ProposalStatus.PROPOSED,
        proposed_by=by.name,
        proposed_at=await bank.now(),
        decided_by=None,
        decided_at=None,
        **what,
    )
    async with _audited(bank, by, "proposed", proposal) as action:
        action.details |= {"what": proposal.words, "reason": proposal.reason}
        await _require_change(bank, action.conn, proposal)
        proposal = msgspec.structs.replace(proposal, ends_entry_no=await _freeze_to_end(action.conn, proposal))
        await _withdraw_lapsed(action, proposal)
        if not await store.add_proposal(action, proposal):
            raise Refused("proposal-open", "There is an open proposal about it already. Confirm or withdraw that.")
    return proposal


async def confirm(bank: Bank, proposal_id: UUID, *, by: Operator) -> Confirmed:
    """Confirm a proposal of another operator, and carry it out.

    Raises NotFound, Refused `same-operator`, `proposal-decided`, `proposal-lapsed`, `freeze-changes-nothing`,
    `freeze-changed`, `movement-made`, and what the rule of the command refuses.
    """
    by.require(Power.DECIDE)
    async with _audited(bank, by, "confirmed", await store.get_proposal(bank.pool, proposal_id)) as action:
        row = await store.lock_proposal(action.conn, proposal_id)
        ends_another = await _freeze_to_end(action.conn, row) != row.ends_entry_no
        if row.status != ProposalStatus.CONFIRMED:
            _require_proposed(row)
        if Operator.are_same(by.name, row.proposed_by):
            raise Refused("same-operator", f"{row.proposed_by} has proposed it; another operator confirms it.")
        if row.status == ProposalStatus.CONFIRMED:
            action.skip()  # the operator who confirmed it was cut off
            ends_another = ends_another and not await store.is_carried_out(
                action.conn, row.owner_id, _freeze_command(bank, row).command_id
            )
        else:
            action.details["what"] = row.words
            now = await bank.now(action.conn)
            await _require_standing(action.conn, row, now)
            await _require_change(bank, action.conn, row)
            if ends_another:
                raise _proposal_changed()
            decided = {"status": ProposalStatus.CONFIRMED, "decided_by": by.name, "decided_at": now}
            row = await update_proposal(action, proposal_id, **decided)
    try:
        if ends_another:
            raise _proposal_changed()
        outcome = await bank.ports[Movements].carry_out(bank, row, _freeze_command(bank, row))
    except (NotFound, Refused):
        await _finish_proposal(bank, row, ProposalStatus.REFUSED, by)
        raise
    return Confirmed(await _finish_proposal(bank, row, ProposalStatus.APPLIED, by), outcome)


async def withdraw(bank: Bank, proposal_id: UUID, *, by: Operator) -> FreezeProposal:
    """Withdraw a proposal, even another operator's. Raises NotFound, Refused `proposal-decided`."""
    by.require(Power.PROPOSE)
    async with _audited(bank, by, "withdrawn", await store.get_proposal(bank.pool, proposal_id)) as action:
        row = await store.lock_proposal(action.conn, proposal_id)
        _require_proposed(row)
        now = await bank.now(action.conn)
        decided = {"status": ProposalStatus.WITHDRAWN, "decided_by": by.name, "decided_at": now}
        return await update_proposal(action, proposal_id, **decided)


async def _finish_proposal(
    bank: Bank, proposal: FreezeProposal, status: ProposalStatus, by: Operator
) -> FreezeProposal:
    async with _audited(bank, by, status.lower(), proposal) as action:
        row = await store.lock_proposal(action.conn, proposal.proposal_id)
        if row.status != ProposalStatus.CONFIRMED:
            action.skip()
            return row
        return await update_proposal(action, row.proposal_id, status=status)


def _audited(bank: Bank, by: Operator, verb: str, row: FreezeProposal) -> AbstractAsyncContextManager[AuditedAction]:
    return audited(
        bank,
        bank.own_id,
        by.origin,
        f"{row.resource}.{verb}",
        resource_id=row.proposal_id,
        details={"operator": by.name},
    )


def _proposal_changed() -> Refused:
    return Refused("freeze-changed", "It was frozen again since: propose to end that freeze.")


def _require_proposed(row: FreezeProposal) -> None:
    if row.status != ProposalStatus.PROPOSED:
        raise Refused("proposal-decided", f"The proposal is {row.status}.")


async def _freeze_to_end(conn: Connection, row: FreezeProposal) -> int | None:
    """Return the entry number of the freeze that a proposal would end; None if the proposal freezes."""
    found = await store.find_freeze(conn, row) if row.subject and not row.freezes else None
    return None if found is None else found.entry_no


async def _withdraw_lapsed(action: AuditedAction, proposal: FreezeProposal) -> None:
    """Withdraw an earlier proposal about the same subject if it can no longer be confirmed."""
    before = await store.lock_open_proposal(action.conn, proposal.subject_id)
    if before is None:
        return
    try:
        await _require_standing(action.conn, before, proposal.proposed_at)
    except Refused:
        decided = {"decided_by": proposal.proposed_by, "decided_at": proposal.proposed_at}
        await update_proposal(action, before.proposal_id, status=ProposalStatus.WITHDRAWN, **decided)
        action.details["withdraws"] = str(before.proposal_id)


async def _require_standing(conn: Connection, row: FreezeProposal, now: datetime) -> None:
    """Refuse a proposal that is too old, or whose proposer may no longer make it."""
    if row.is_too_old(now):
        raise Refused("proposal-lapsed", f"It is older than {PROPOSAL_LIFETIME.days} days. Propose it again.")
    user_id = Operator.user_id_in(row.proposed_by)
    if user_id is None:
        return
    teams = await list_user_memberships(conn, user_id, only_active=True)
    if not any(each.is_of_bank and row.power in POWERS[each.role] for each in teams):
        raise Refused("proposal-lapsed", f"{row.proposed_by} may no longer propose it. Propose it again.")


async def _require_change(bank: Bank, conn: Connection, row: FreezeProposal) -> None:
    if row.subject is None:
        await _require_not_made(conn, bank.ports[Movements].read_command(row))
    elif await store.is_frozen(conn, row) == row.freezes:
        state = "frozen already" if row.freezes else "not frozen"
        raise Refused("freeze-changes-nothing", f"The {row.subject.lower()} is {state}.")


async def _require_not_made(conn: Connection, command: Command) -> None:
    """Refuse a command that was already carried out under the same key, because it would count once."""
    if await store.is_carried_out(conn, command.customers[0], command.command_id):
        raise Refused(
            "movement-made", "It was decided before under the same key. Use another key for another movement."
        )


async def _subject_owner(bank: Bank, subject: FreezeSubject, subject_id: UUID) -> UUID:
    """Return the customer who owns the subject; the bank itself cannot be frozen. Raises NotFound."""
    entry = await bank.directory.find(subject.lower(), subject_id)
    if entry is None or entry.customer_id == bank.own_id:
        raise NotFound(f"There is no such {subject.lower()}.")
    return entry.customer_id


def _freeze_command(bank: Bank, row: FreezeProposal) -> Command:
    key, customers = command_id("freeze", row.proposal_id), (row.owner_id,)
    who: dict[str, Any] = {"caller": _CALLER, "key": key, "customers": customers, "origin": Origin.operator()}
    match row.subject:
        case None:
            return bank.ports[Movements].read_command(row)
        case FreezeSubject.CUSTOMER:
            status = CustomerStatus.FROZEN if row.freezes else CustomerStatus.OPEN
            return SetCustomerState(**who, references=(row.owner_id,), status=status, reason=row.reason)
        case FreezeSubject.POCKET:
            state = PocketStatus.FROZEN if row.freezes else PocketStatus.OPEN
            return SetPocketState(**who, pocket_id=row.subject_id, status=state)
        case FreezeSubject.CARD:
            fields: dict[str, Any] = {"card_id": row.subject_id, "is_frozen": row.freezes, "reason": row.reason}
            return bank.ports[Movements].freeze_card(**who, references=(row.subject_id,), **fields)
