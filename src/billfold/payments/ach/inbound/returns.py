"""Returns that we send for entries that reached no customer, and what other banks say about returns of ours."""

from collections.abc import Sequence
from uuid import UUID

import msgspec

from billfold.ledger import scheduler as jobs_store
from billfold.ledger.bank import Bank
from billfold.ledger.scheduler import bank_customer_id
from billfold.ledger.types import ScheduledJob
from billfold.payments.ach.nacha.types import EntryLine, ReturnAddenda
from billfold.payments.ach.rules import windows
from billfold.payments.ach.rules.entries import ACH_WINDOW, window_at
from billfold.payments.ach.store import files
from billfold.payments.ach.types import IncomingEntry, ReturnEntry, return_of
from billfold.payments.return_codes import CONTESTED_RETURN_REASONS, DISHONORED_RETURN_REASONS, RETURN_REASONS
from billfold.payments.suspense import store as suspense_store

SUSPENSE_RETURN_JOB = "ach.suspense_return"
"""The kind of scheduled job that queues a return for money that has left suspense."""


async def schedule_return_entries(bank: Bank, answers: Sequence[tuple[UUID, ReturnEntry]]) -> None:
    """Queue returns, each with its id, for the next window."""
    if not answers:
        return
    now, bank_id = await bank.now(), bank_customer_id(bank.seed)
    due_at = windows.next_deadline(now, bank.calendars)
    await files.queue_return_entries(bank.pool, answers, bank_id, due_at=due_at, now=now)
    await jobs_store.schedule(bank.pool, [ScheduledJob(ACH_WINDOW, window_at(due_at), None, at=due_at)])


async def queue_suspense_return(bank: Bank, at: ScheduledJob) -> None:
    """Queue the return of a suspense item that was released for return."""
    item = await suspense_store.get_item(bank.pool, at.object_id)
    return_fields = msgspec.json.decode(item.details).get("answer")
    if return_fields is not None:
        entry = msgspec.convert(return_fields, ReturnEntry)
        if {entry.reason, item.return_reason} <= RETURN_REASONS.keys():  # an operator has named another code
            entry = msgspec.structs.replace(entry, reason=item.return_reason)
        await schedule_return_entries(bank, [(item.item_id, entry)])


def dishonored_return(line: EntryLine, incoming: IncomingEntry, addenda: ReturnAddenda, *, code: str) -> ReturnEntry:
    """Return the dishonored return: it repeats the trace number, date and reason of the return."""
    bank, day = addenda.original_receiving_dfi_identification, line.batch.settlement_date or 0
    information = f"   {line.entry.trace_number}{day:03}{addenda.return_reason_code[1:]}"
    answer = return_of(incoming, code, bank=bank, information=information)
    return msgspec.structs.replace(answer, original_trace=addenda.original_entry_trace_number)


def refusal_of(addenda: ReturnAddenda) -> str | None:
    """Return what another bank says about a return: that it dishonors ours, or contests that we dishonored its own.

    None of any other return. The columns are those of Appendix Four for these codes.
    """
    code, told = addenda.return_reason_code, addenda.addenda_information.ljust(_INFORMATION_WIDTH)
    returned = f"with trace number {told[3:18].strip()} under R{told[21:23]}, settled on day {told[18:21]}"
    if code in DISHONORED_RETURN_REASONS:
        return f"Our return was refused under {code}, {DISHONORED_RETURN_REASONS[code]}. It was sent {returned}."
    if code not in CONTESTED_RETURN_REASONS:
        return None
    # The day of the return is in the columns of a date of death.
    on = f" on {addenda.date_of_death}" if addenda.date_of_death else ""
    return (
        f"Our dishonored return was contested under {code}, {CONTESTED_RETURN_REASONS[code]}. Entry "
        f"{addenda.original_entry_trace_number}, settled on day {told[:3]}, was returned{on} {returned}. It was "
        f"dishonored with trace number {told[23:38].strip()} under R{told[41:43]}, settled on day {told[38:41]}."
    )


_INFORMATION_WIDTH = 44
