"""Carries out all commands of a list or none, finds the strictest approval of a list, and raises the events. Pure."""

from collections.abc import Iterable, Sequence
from typing import Any

from billfold.accounts.pockets.commands import OpenPocket
from billfold.approvals.types import ApprovalRequirement
from billfold.batches.commands import CommandList, ReportBatch
from billfold.events import kinds
from billfold.ledger.book.book import Book
from billfold.ledger.book.draft import Savepoint
from billfold.ledger.book.recording import event
from billfold.ledger.commands import Books, Command, Missing, Outcome, add_command_row, book_of, decides
from billfold.ledger.context import Context
from billfold.platform.errors import NotFound, Refused
from billfold.treasury.rules.withdraw import NOTHING_TO_MOVE

_CODES = {"INSUFFICIENT_FUNDS": "insufficient-funds", NOTHING_TO_MOVE: "nothing-to-move"}
BATCH_REFUSED = "batch-refused"


def problem_of(reason: str) -> tuple[str, str]:
    """Return the code and the sentence for the reason with which a transfer was rejected."""
    return _CODES.get(reason, "transfer-not-possible"), f"The transfer is rejected: {reason}."


@decides(CommandList)
def carry_out_all(books: Books, cmd: CommandList, ctx: Context) -> Outcome:
    """Carry out each part on the state that those before it leave. A part that is rejected is refused, too.

    Refuses: batch-refused, with every part that would be refused if the others were carried out. Then nothing moves.
    """
    savepoints: list[tuple[Book, Savepoint | None]] = []
    refused: list[dict[str, Any]] = []
    made: dict[str, list[dict[str, Any]]] = {"counterparties": [], "pockets": []}
    try:
        for part in cmd.parts:
            own = {each: book_of(books, each) for each in part.customers}
            savepoints += [(book, book.savepoint()) for book in own.values()]
            try:
                outcome = _carry_out(part, own, ctx)
                made["counterparties"] += outcome.get("counterparties", ())
                if isinstance(part, OpenPocket):
                    made["pockets"].append({"pocket_id": outcome["pocket_id"]})
            except (Refused, NotFound) as refusal:
                for book in own.values():
                    book.undo()
                refused.append({"key": str(part.key), "code": refusal.code, "detail": refusal.detail})
    except Missing:
        _undo_all(savepoints)
        raise
    ctx.serve(cmd.command_id)
    if refused:
        _undo_all(savepoints)
        detail = f"{len(refused)} of {len(cmd.parts)} rows cannot be carried out, so none was."
        raise Refused(BATCH_REFUSED, detail, parts=refused)
    return {"parts": len(cmd.parts), **{name: each for name, each in made.items() if each}}


def _carry_out(part: Command, own: Books, ctx: Context) -> Outcome:
    """Carry out a part, with its own command row, as if it had been submitted alone; return its outcome."""
    ctx.serve(part.command_id)
    outcome = part.decide(own, ctx)
    if outcome.get("status") == "REJECTED":
        raise Refused(*problem_of(outcome["reason"]))
    add_command_row(own[part.customers[0]], part, outcome, ctx.now, accepted=True)
    return outcome


def _undo_all(savepoints: Sequence[tuple[Book, Savepoint | None]]) -> None:
    for book, earlier in reversed(savepoints):
        book.undo_to(earlier)


@decides(ReportBatch)
def report_batch(books: Books, cmd: ReportBatch, ctx: Context) -> Outcome:
    """Raise the event of the end of a batch."""
    payload = kinds.BatchPayload(batch_id=cmd.key, completed=cmd.completed, failed=cmd.failed)
    kind = kinds.BATCH_FAILED if cmd.refused else kinds.BATCH_COMPLETED
    event(book_of(books, cmd.customers[0]), ctx, kind, payload)
    return {"batch_id": str(cmd.key)}


def strictest(requirements: Iterable[ApprovalRequirement]) -> ApprovalRequirement | None:
    """Return the requirement whose approvals are enough for each of the others; None if there is none."""
    distinct = list({_key_of(each): each for each in requirements}.values())
    return next((each for each in distinct if all(is_enough(each, other) for other in distinct)), None)


def is_enough(one: ApprovalRequirement, other: ApprovalRequirement) -> bool:
    """Tell whether any approvals that meet one requirement meet another."""
    if not other.required or _key_of(one) == _key_of(other):
        return True
    if one.required < other.required or other.ordered:
        return False
    if other.policy_roles and not (one.policy_roles and {*one.policy_roles} <= {*other.policy_roles}):
        return False
    if not (other.roles or other.ids):
        return True
    named = {*one.roles}, {*one.ids}
    return any(named) and named[0] <= {*other.roles} and named[1] <= {*other.ids}


def _key_of(terms: ApprovalRequirement) -> tuple[object, ...]:
    return terms.rule_id, terms.required, terms.policy_roles
