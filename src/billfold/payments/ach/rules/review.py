"""An operator approves, rejects or cancels an entry."""

from billfold.events import kinds
from billfold.ledger.commands import Books, Outcome, book_of, decides
from billfold.ledger.context import Context
from billfold.ledger.types import Direction
from billfold.payments.ach.commands import AchStatus, OriginationHistory, ReviewAch
from billfold.payments.ach.rules import entries
from billfold.payments.ach.rules.windows import schedule
from billfold.platform.errors import Refused

RATES = (("unauthorised", 5), ("administrative", 30), ("returned", 150))
"""The return rates that Nacha allows, of a thousand debits."""
_DEBITS_MIN = 20
"""Return rates are checked from this many debits on."""
ADMINISTRATIVE = frozenset({"R02", "R03", "R04"})
UNAUTHORISED = frozenset({"R05", "R07", "R10", "R11", "R29", "R51"})
HISTORY_DAYS = 60


def review_reason(amount: int, history: OriginationHistory, *, above_cents: int) -> str | None:
    """Return why an operator has to decide about an entry; None if it is approved by rule.

    An operator decides about entries above the customer's daily limit, and about all entries of a
    customer whose return rates exceed those that Nacha allows.
    """
    if history.today_cents + amount > above_cents:
        return f"The day's entries come to more than {above_cents} cents."
    if history.debits >= _DEBITS_MIN:
        for name, per_mille in RATES:
            if getattr(history, name) * 1000 > history.debits * per_mille:
                return f"The rate of {name} debits is above {per_mille / 10:g} %."
    return None


@decides(ReviewAch)
def review_ach(books: Books, cmd: ReviewAch, ctx: Context) -> Outcome:
    """Approve the entry, or refund its debit. Refuses: ach-origination-not-pending.

    An approved entry can be CANCELLED until it is in a file.
    """
    book = book_of(books, cmd.customers[0])
    entry = entries.referenced_entry(book, cmd.ach_id)
    waits = entry.status == AchStatus.APPROVED and entry.file_id is None
    if entry.status != AchStatus.PENDING and not (waits and cmd.decision == AchStatus.CANCELLED):
        raise Refused("ach-origination-not-pending", f"The origination is {entry.status}.")
    if cmd.decision == AchStatus.APPROVED:
        times = schedule(
            ctx.now,
            entry.amount,
            ctx.calendars,
            is_credit=entry.direction == Direction.CREDIT,
            cutoff=ctx.terms.ach_cutoff,
        )
        entries.approve_stored(book, entry, times, ctx=ctx)
    else:
        if entry.entry_no is not None and entry.pocket_id is not None:
            entries.reverse_booking(book, book.pockets[entry.pocket_id], entry, ctx=ctx, ending=" not sent")
        entries.update_entry(book, entry, ctx, status=cmd.decision, reason=cmd.reason or entry.reason)
        entries.raise_ach_event(book, ctx, entry, kind=kinds.ACH_OUT_REJECTED)
    return {"ach_id": str(cmd.ach_id), "status": cmd.decision}
