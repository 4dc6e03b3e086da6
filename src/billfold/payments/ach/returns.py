"""Returns that we send for entries that reached no customer, and other banks' answers to our returns."""

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

import msgspec

from billfold.accounts.counterparties.rules.notification_of_change import CHANGE_CODES, REFUSED_CHANGE_CODES
from billfold.ledger import scheduler
from billfold.ledger.bank import Bank
from billfold.ledger.types import ScheduledJob
from billfold.payments.ach import store
from billfold.payments.ach.commands import ReturnEntry
from billfold.payments.ach.nacha import records
from billfold.payments.ach.rules import windows
from billfold.payments.ach.rules.entries import ACH_WINDOW, window_at
from billfold.payments.ach.rules.returns import UNKNOWN_ENTRY
from billfold.payments.return_codes import (
    CONTESTED_RETURN_REASONS,
    DISHONORED_RETURN_REASONS,
    RECEIVED_RETURN_REASONS,
    RETURN_REASONS,
)
from billfold.payments.suspense import store as suspense_store

UNREADABLE = "R17"
"""The return code of an entry with a field that the receiving bank cannot process."""
INTERNATIONAL_REASON = (
    "It is an international entry (IAT), of which this bank writes no returns. Screen its parties, then credit it to "
    "whom it is for (billfold suspense assign), or have the ACH operator return it (billfold suspense return "
    "--by-hand). A debit that no bank takes back is written off: billfold suspense write-off."
)
_ODD_RETURN_REASON = (
    "It comes back from another bank, and no entry of ours returns it. Settle that with the bank (billfold suspense "
    "return --by-hand), credit it to whom it was for (billfold suspense assign), or write a debit off (billfold "
    "suspense write-off)."
)
_RETURN_CODES = RECEIVED_RETURN_REASONS.keys() | DISHONORED_RETURN_REASONS.keys() | CONTESTED_RETURN_REASONS.keys()


class Objection(NamedTuple):
    """The reason why an entry is not booked.

    An entry that moves money is held, and returned under `return_code` if no person assigns it; `stays` is the reason
    why it cannot be returned. An entry with neither is listed: it moves no money.
    """

    reason: str
    return_code: str | None = None
    stays: str = ""

    @property
    def is_held(self) -> bool:
        """True if the entry moves money."""
        return bool(self.return_code or self.stays)


def objection_to(line: records.EntryLine, batch_mistake: str | None) -> Objection | None:
    """Return why an entry is not booked as received; None if there is no objection."""
    if line.batch.standard_entry_class_code == records.ADVICE:
        return Objection("It is an accounting advice (ADV), which moves no money.")
    objection = _objection(line, batch_mistake)
    if objection is None or not line.entry.amount:
        return objection and Objection(objection.reason)
    if line.batch.is_international:
        return Objection(objection.reason, stays=INTERNATIONAL_REASON)
    # An entry without a known bank cannot be returned.
    has_bank = int(line.batch.originating_dfi_identification) != 0
    return objection if has_bank or objection.stays else Objection(objection.reason, stays=_ODD_RETURN_REASON)


def _objection(line: records.EntryLine, batch_mistake: str | None) -> Objection | None:
    if line.returned is not None:
        return _objection_to_return(line, line.returned, batch_mistake)
    if line.changed is not None:
        return _objection_to_change(line, line.changed)
    mistake = batch_mistake or line.mistake
    if mistake:
        return Objection(f"{mistake[0].upper()}{mistake[1:]}.", UNREADABLE)
    if line.batch.is_international:
        return Objection("It is an international entry (IAT).", stays=INTERNATIONAL_REASON)
    return _objection_to_entry(line)


def _objection_to_entry(line: records.EntryLine) -> Objection | None:
    entry, entry_class = line.entry, line.batch.standard_entry_class_code
    way = entry.transaction_code[1]
    if way in "16":
        reason = f"Transaction code {entry.transaction_code} is one of returns, and no addenda says of what."
        return Objection(reason, stays=_ODD_RETURN_REASON)
    if entry_class == records.NOC_ENTRY_CLASS:
        return Objection("No addenda says what is to be changed.", UNREADABLE)
    told = f"An entry of {entry.amount} cents has the class {entry_class} and the code {entry.transaction_code}."
    if entry.amount:
        is_odd = way in _OF_NO_AMOUNT or entry_class in {*_TELLING_CLASSES, records.DEATH_NOTICE}
        return Objection(told, UNREADABLE) if is_odd else None
    if way in _PRENOTES and entry_class not in _TELLING_CLASSES:
        return None
    return Objection(told if way not in _OF_NO_AMOUNT else f"{told} Its remittance information is in the file.")


_PRENOTES, _OF_NO_AMOUNT = "38", "3489"
"""The last digits of transaction codes of prenotes, and of all zero-amount entries."""
_TELLING_CLASSES = frozenset({"ACK", "ATX", "ENR"})
"""Entry classes that only carry information: payment acknowledgments, enrollments."""


def _objection_to_return(
    line: records.EntryLine, addenda: records.ReturnAddenda, batch_mistake: str | None
) -> Objection | None:
    code, entry = addenda.return_reason_code, line.entry
    if batch_mistake:
        reason = f"{batch_mistake[0].upper()}{batch_mistake[1:]}."
    elif code not in _RETURN_CODES:
        reason = f"{code!r} is not a return code."
    elif entry.transaction_code[1] not in "16":
        reason = f"Transaction code {entry.transaction_code} does not fit a return under {code}."
    else:
        return None if entry.amount else Objection(line.mistake or f"A return of no amount under {code}.")
    is_about_return = code[:2] in {"R6", "R7"}
    return Objection(reason, stays=_ODD_RETURN_REASON) if is_about_return else Objection(reason, UNKNOWN_ENTRY)


def _objection_to_change(line: records.EntryLine, addenda: records.NocAddenda) -> Objection | None:
    code = addenda.change_code
    if line.entry.amount:
        reason = f"A notification of change says {line.entry.amount} cents instead of none."
        return Objection(reason, stays=_ODD_RETURN_REASON)
    if code in REFUSED_CHANGE_CODES:
        refused = f"{addenda.refused_change_code} {addenda.refused_trace_sequence_number}".strip()
        return Objection(f"Our notification of change {refused} was refused under {code}.")
    return None if code in CHANGE_CODES else Objection(f"{code!r} is not a change code.")


SUSPENSE_RETURN_JOB = "ach.suspense_return"
"""The kind of scheduled job that queues a return for money that has left suspense."""


async def schedule_return_entries(bank: Bank, answers: Sequence[tuple[UUID, ReturnEntry]]) -> None:
    """Queue returns, each with its id, for the next window."""
    if not answers:
        return
    now, bank_id = await bank.now(), bank.own_id
    due_at = windows.next_deadline(now, bank.calendars)
    await store.queue_return_entries(bank.pool, answers, bank_id, due_at=due_at, now=now)
    await scheduler.schedule(bank.pool, [ScheduledJob(ACH_WINDOW, window_at(due_at), None, at=due_at)])


async def queue_suspense_return(bank: Bank, at: ScheduledJob) -> None:
    """Queue the return of a suspense item that was released for return."""
    item = await suspense_store.get_item(bank.pool, at.object_id)
    return_fields = msgspec.json.decode(item.details).get("answer")
    if return_fields is not None:
        entry = msgspec.convert(return_fields, ReturnEntry)
        if {entry.reason, item.return_reason} <= RETURN_REASONS.keys():  # an operator has given another code
            entry = msgspec.structs.replace(entry, reason=item.return_reason)
        await schedule_return_entries(bank, [(item.item_id, entry)])
