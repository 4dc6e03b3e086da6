"""What must be right about an ACH file before any of it is booked, beyond its spelling."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from billfold.domain.ach import CHANGE_CODES, RETURN_REASONS, Incoming, correction_of
from billfold.ports.ach_network import (
    RETURN_OR_CHANGE,
    SHOWN,
    AchFile,
    Batch,
    Change,
    Entry,
    Mistake,
    Payment,
    Return,
)

DISHONOURED = frozenset(f"R{number}" for number in (*range(61, 78), *range(83, 86)))
"""Returns of our own returns: held for a person to look at."""


class Line(NamedTuple):
    """An entry, where it stands in the file (from 1), and the batch it belongs to."""

    number: int
    batch: Batch
    entry: Entry

    @property
    def returned(self) -> Return | None:
        """The return it tells of, if it does."""
        return next((each for each in self.entry.addenda if isinstance(each, Return)), None)

    @property
    def changed(self) -> Change | None:
        """The change it tells of, if it does."""
        return next((each for each in self.entry.addenda if isinstance(each, Change)), None)

    @property
    def incoming(self) -> Incoming:
        """The entry with what its batch says."""
        entry, batch = self.entry, self.batch
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


def lines_of(file: AchFile) -> Iterator[Line]:
    """Yield every entry with the number of its line."""
    number = 1
    for batch in file.batches:
        number += 1
        for entry in batch.entries:
            number += 1
            yield Line(number, batch, entry)
            number += len(entry.addenda)
        number += 1


def mistakes_in(file: AchFile, routing_number: str) -> list[Mistake]:
    """Return what is wrong with a file that was sent to the bank of this routing number."""
    found = []
    if file.destination != routing_number:
        reason = f"is addressed to {file.destination}, and this bank is {routing_number}"
        found.append(Mistake(1, (4, 13), reason))
    for line in lines_of(file):
        reason = _mistake(line) or ""
        if reason:
            found.append(Mistake(line.number, None, reason))
        if len(found) >= SHOWN:
            break
    return found


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
    fits = (entry.amount == 0) == line.incoming.is_prenote
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
