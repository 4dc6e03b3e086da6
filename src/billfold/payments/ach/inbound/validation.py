"""Validation of an inbound ACH file before it is booked, beyond its format."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from billfold.accounts.counterparties.rules.notification_of_change import CHANGE_CODES, correction_of
from billfold.data_keys.types import PartyField
from billfold.payments.ach.nacha.reader import read_header, read_lines
from billfold.payments.ach.nacha.types import (
    NOC_ENTRY_CLASS,
    AchFile,
    AchFileMistake,
    Entry,
    EntryLine,
    NocAddenda,
    PaymentAddenda,
    ReturnAddenda,
)
from billfold.payments.ach.rules.return_codes import RETURN_REASONS
from billfold.payments.ach.types import IncomingEntry
from billfold.payments.files.types import MISTAKES_MAX, InvalidFile

if TYPE_CHECKING:
    from billfold.data_keys.types import DataKey

DISHONORED_RETURN_CODES = frozenset(f"R{number}" for number in (*range(61, 78), *range(83, 86)))
"""Dishonored returns of our own returns: held in suspense for an operator."""


def incoming_of(line: EntryLine, data_key: DataKey, bank_key: DataKey) -> IncomingEntry:
    """Return an entry with the fields of its batch; accounts, identifications and texts are sealed.

    That of the company is sealed with the bank's key: returns are batched by it.
    """
    entry, batch = line.entry, line.batch
    seal_text = partial(PartyField.TEXT.seal, data_key)
    texts = [each.payment_related_information for each in entry.addenda if isinstance(each, PaymentAddenda)]
    return IncomingEntry(
        code=entry.transaction_code,
        amount=entry.amount,
        account_number=PartyField.ACCOUNT.seal(data_key, entry.dfi_account_number),
        name=entry.individual_name,
        identification=entry.individual_identification_number and seal_text(entry.individual_identification_number),
        trace=entry.trace_number,
        bank=batch.originating_dfi_identification,
        entry_class=batch.standard_entry_class_code,
        company=batch.company_name,
        company_id=PartyField.TEXT.seal(bank_key, batch.company_identification),
        purpose=batch.company_entry_description,
        effective_on=batch.effective_entry_date,
        lines=[seal_text(each) for each in texts],
    )


def check_file(raw: bytes, routing_number: str) -> AchFile:
    """Return the header of a valid file that is addressed to this routing number.

    Raises InvalidFile with the first hundred mistakes.
    """
    mistakes: list[AchFileMistake] = []
    for line in read_lines(raw):
        reason = _mistake(line) if len(mistakes) < MISTAKES_MAX else None
        if reason:
            mistakes.append(AchFileMistake(line.number, None, reason))
    head = read_header(raw)
    if head.immediate_destination != routing_number:
        reason = f"is addressed to {head.immediate_destination}, and this bank is {routing_number}"
        mistakes.insert(0, AchFileMistake(1, (4, 13), reason))
    if mistakes:
        raise InvalidFile(mistakes)
    return head


def _mistake(line: EntryLine) -> str | None:
    """Return what is wrong with one entry, or None."""
    entry, return_addenda, noc_addenda = line.entry, line.returned, line.changed
    is_return_or_noc = entry.transaction_code[1] in "16"
    if (line.batch.standard_entry_class_code == NOC_ENTRY_CLASS) != (noc_addenda is not None):
        return "a notification of change needs the entry class COR, and COR a notification of change"
    if is_return_or_noc != (return_addenda is not None or noc_addenda is not None):
        return f"transaction code {entry.transaction_code} does not fit its addenda"
    if return_addenda is not None or noc_addenda is not None:
        return _noc_mistake(entry, noc_addenda) if noc_addenda else _return_mistake(return_addenda)
    code_fits = (entry.amount == 0) == (entry.transaction_code[1] in "38")
    return None if code_fits else f"an entry of {entry.amount} cents has the code {entry.transaction_code}"


def _return_mistake(return_addenda: ReturnAddenda | None) -> str | None:
    code = return_addenda.return_reason_code if return_addenda else ""
    if code in RETURN_REASONS or code in DISHONORED_RETURN_CODES:
        return None
    return f"{code} is not a return code"


def _noc_mistake(entry: Entry, noc_addenda: NocAddenda) -> str | None:
    if entry.amount:
        return f"a notification of change says {entry.amount} cents instead of none"
    if noc_addenda.change_code not in CHANGE_CODES:
        return f"{noc_addenda.change_code} is not a change code"
    try:
        correction_of(noc_addenda.change_code, noc_addenda.corrected_data)
    except ValueError as error:
        return str(error)
    return None
