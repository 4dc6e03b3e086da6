"""What must be right about an ACH file before any of it is booked, beyond its spelling."""

from __future__ import annotations

from billfold.payments.ach.ports import (
    RETURN_OR_CHANGE,
    SHOWN,
    AchFile,
    AchFormat,
    Change,
    Entry,
    FileRefused,
    Line,
    Mistake,
    Payment,
    Return,
)
from billfold.payments.ach.rules.notifications_of_change import CHANGE_CODES, correction_of
from billfold.payments.ach.rules.return_codes import RETURN_REASONS
from billfold.payments.ach.types import Incoming

DISHONOURED = frozenset(f"R{number}" for number in (*range(61, 78), *range(83, 86)))
"""Returns of our own returns: held for a person to look at."""


def incoming_of(line: Line) -> Incoming:
    """Return an entry with what its batch says."""
    entry, batch = line.entry, line.batch
    return Incoming(
        code=entry.code,
        amount=entry.amount,
        account_number=entry.account_number,
        name=entry.name,
        identification=entry.identification,
        trace=entry.trace,
        bank=batch.bank,
        entry_class=batch.entry_class,
        company=batch.company,
        company_id=batch.company_id,
        purpose=batch.purpose,
        effective_on=batch.effective_on,
        lines=[each.text for each in entry.addenda if isinstance(each, Payment)],
    )


def check(spelling: AchFormat, raw: bytes, routing_number: str) -> AchFile:
    """Return what a file says of itself once all of it holds, read by the bank of this number.

    Raises FileRefused with every line that does not, the first hundred.
    """
    found: list[Mistake] = []
    for line in spelling.lines(raw):
        reason = _mistake(line) if len(found) < SHOWN else None
        if reason:
            found.append(Mistake(line.number, None, reason))
    head = spelling.head(raw)
    if head.destination != routing_number:
        reason = f"is addressed to {head.destination}, and this bank is {routing_number}"
        found.insert(0, Mistake(1, (4, 13), reason))
    if found:
        raise FileRefused(found)
    return head


def _mistake(line: Line) -> str | None:
    """Return what is wrong with one entry, if anything is."""
    entry, returned, changed = line.entry, line.returned, line.changed
    answers = entry.code[1] in "16"
    if (line.batch.entry_class == RETURN_OR_CHANGE) != (changed is not None):
        return "a notification of change and the class COR go together"
    if answers != (returned is not None or changed is not None):
        return f"transaction code {entry.code} does not fit its addenda"
    if returned is not None or changed is not None:
        return _mistaken_change(entry, changed) if changed else _unknown_return(returned)
    fits = (entry.amount == 0) == (entry.code[1] in "38")
    return None if fits else f"an entry of {entry.amount} cents has the code {entry.code}"


def _unknown_return(returned: Return | None) -> str | None:
    code = returned.reason if returned else ""
    if code in RETURN_REASONS or code in DISHONOURED:
        return None
    return f"{code} is no return code"


def _mistaken_change(entry: Entry, changed: Change) -> str | None:
    if entry.amount:
        return f"a notification of change says {entry.amount} cents instead of none"
    if changed.code not in CHANGE_CODES:
        return f"{changed.code} is no code of a change"
    try:
        correction_of(changed.code, changed.corrected)
    except ValueError as error:
        return str(error)
    return None
