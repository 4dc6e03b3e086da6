"""Dishonored returns, which we send, and contested ones, which come back."""

import msgspec

from billfold.payments.ach.commands import IncomingEntry, ReturnEntry, return_of
from billfold.payments.ach.nacha.records import EntryLine, ReturnAddenda
from billfold.payments.return_codes import CONTESTED_RETURN_REASONS, DISHONORED_RETURN_REASONS

_INFORMATION_WIDTH = 44


def dishonored_return(line: EntryLine, incoming: IncomingEntry, addenda: ReturnAddenda, *, code: str) -> ReturnEntry:
    """Return the dishonored return: it repeats the trace number, date and reason of the return."""
    bank, day = addenda.original_receiving_dfi_identification, line.batch.settlement_date or 0
    information = f"   {line.entry.trace_number}{day:03}{addenda.return_reason_code[1:]}"
    answer = return_of(incoming, code, bank=bank, information=information)
    return msgspec.structs.replace(answer, original_trace=addenda.original_entry_trace_number)


def refusal_of(addenda: ReturnAddenda) -> str | None:
    """Return another bank's answer to a return: it dishonors ours, or contests our dishonor of its own.

    None for any other return. The columns are those of Appendix Four for these codes.
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
