"""Actions of operators on breaks: authority is checked here, for the console and the command line alike.

One operator owns and notes. To close a break, or to post its difference, one proposes and another confirms.
"""

from typing import Any
from uuid import UUID

from billfold.dual_control.decisions import propose_movement
from billfold.dual_control.store import FreezeProposal
from billfold.identity.operators import Operator, Power
from billfold.ledger.bank import Bank
from billfold.ledger.commands import Command, Outcome
from billfold.ledger.types import Direction, Rail
from billfold.payments.files.inbound import WAIT
from billfold.payments.suspense.rules import NOT_RETURNABLE, HoldInSuspense
from billfold.platform import ids
from billfold.platform.database.background_work import claimed
from billfold.platform.errors import InvalidInput, Refused
from billfold.platform.money import format_usd
from billfold.reconciliation.commands import AssignBreak, CloseBreak
from billfold.reconciliation.store import get_break
from billfold.reconciliation.types import CLAIM, Break, BreakStatus, Cause, Resolution, Source, held_id

OWNER_CHARS_MAX, NOTE_CHARS_MAX = 100, 500
_HAND = "It came with a statement of the reserve account, without a message that could be returned."
HELD_RAILS = (Rail.WIRE, Rail.ACH)


async def assign(bank: Bank, break_id: UUID, *, owner: str, note: str, by: Operator) -> None:
    """Name the owner of a break, and note what is known. Raises InvalidInput, NotFound, Refused `break-state`."""
    by.require(Power.RECONCILE)
    for name, text, most in (("owner", owner, OWNER_CHARS_MAX), ("note", note, NOTE_CHARS_MAX)):
        if len(text) > most or not text.isprintable():
            raise InvalidInput.at(name, msg=f"must be at most {most} printable characters")
    given: dict[str, Any] = {"owner": owner.strip() or None, "note": note.strip() or None}
    await bank.engine.submit(AssignBreak(**_who(bank, by), references=(break_id,), break_id=break_id, **given))


async def propose_close(
    bank: Bank, break_id: UUID, resolution: Resolution, *, reason: str, by: Operator
) -> FreezeProposal:
    """Propose to close a break: with an explanation, or by posting its difference.

    Raises InvalidInput, NotFound, Refused `break-state`, `proposal-open`.
    """
    by.require(Power.RECONCILE)
    row = await get_break(bank.pool, bank.own_id, break_id)
    if resolution == Resolution.MATCHED:
        raise InvalidInput.at("resolution", msg="must be EXPLAINED, LOSSES or INVENTORY: a match closes itself")
    command = CloseBreak(
        **_who(bank, by),
        references=(break_id, held_id(break_id)),
        break_id=break_id,
        resolution=resolution,
        reason=reason.strip(),
        difference=row.difference,
    )
    how = "with an explanation" if resolution == Resolution.EXPLAINED else f"by posting to {resolution.lower()}"
    words = f"Close break {how}: {describe(row)}"
    return await propose_movement(bank, command, about=break_id, words=words, reason=reason, by=by)


async def propose_hold(bank: Bank, break_id: UUID, rail: Rail, *, reason: str, by: Operator) -> FreezeProposal:
    """Propose to hold the difference of a line in suspense: the next close settles it, and the break closes itself.

    Raises InvalidInput, NotFound, Refused `break-state`, `proposal-open`, `movement-made`.
    """
    by.require(Power.RECONCILE)
    row = await get_break(bank.pool, bank.own_id, break_id)
    if rail not in HELD_RAILS or row.rail not in {None, rail}:
        raise InvalidInput.at("rail", msg=f"must be {row.rail or ' or '.join(HELD_RAILS)}, by which the money moved")
    fits = row.source == Source.RESERVE and row.cause in {Cause.UNKNOWN_LINE, Cause.DIFFERENT_AMOUNT}
    if not (fits and row.status == BreakStatus.OPEN):
        raise Refused("break-state", f"A break of the cause {row.cause} that is {row.status} has nothing to hold.")
    command = HoldInSuspense(
        **_who(bank, by) | {"key": held_id(break_id)},
        item_id=held_id(break_id),
        rail=rail,
        direction=Direction.CREDIT if row.difference > 0 else Direction.DEBIT,
        amount=abs(row.difference),
        reason="UNKNOWN_LINE",
        details={NOT_RETURNABLE: _HAND, "statement": row.day.isoformat(), "reference": row.reference},
    )
    words = f"Hold in suspense: {describe(row)}"
    return await propose_movement(bank, command, about=break_id, words=words, reason=reason, by=by)


async def carry_out_hold(bank: Bank, proposal: FreezeProposal, command: Command) -> Outcome:
    """Hold the difference of a break, unless a statement has closed the break or changed it in the meantime.

    Raises Refused `break-state`.
    """
    assert isinstance(command, HoldInSuspense)
    async with claimed(bank.pool, CLAIM, wait=WAIT):
        row = await get_break(bank.pool, bank.own_id, proposal.subject_id)
        if row.status != BreakStatus.OPEN or abs(row.difference) != command.amount:
            raise Refused("break-state", "The break has changed since it was proposed.")
        return (await bank.engine.submit(command)).outcome


def describe(row: Break) -> str:
    """Return a break in words, with both sides."""
    sides = (f"{name} {side_of(row, value)}" for name, value in (("stated", row.stated), ("booked", row.booked)))
    named = f" {row.reference}" if row.reference and row.reference not in row.subject else ""
    return f"{row.cause} of {row.source} {row.account}, {row.day}, {row.subject}{named}: {', '.join(sides)}"


def side_of(row: Break, value: int | None) -> str:
    """Return one side of a break as text: money, or bills of the custodian."""
    if value is None:
        return "nothing"
    return format_usd(value) if row.counts_money else f"{value:,} units"


def _who(bank: Bank, by: Operator) -> dict[str, Any]:
    return {"caller": "operator", "key": ids.new(), "customers": (bank.own_id,), "origin": by.origin}
