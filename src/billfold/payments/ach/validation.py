"""An inbound ACH file before it is booked: its mistakes, its report, and the fields of its entries that are kept."""

from enum import StrEnum
from functools import partial
from typing import Any, NamedTuple

import msgspec

from billfold.data_keys.keys import DataKey, PartyField
from billfold.payments.ach.commands import IncomingEntry
from billfold.payments.ach.nacha.reader import read_batch_mistakes, read_header
from billfold.payments.ach.nacha.records import AchFile, AchFileMistake, EntryLine, PaymentAddenda
from billfold.payments.files.types import InvalidFile, StuckLine

REPORTED_LINES_MAX = 1_000
"""Maximum number of entries listed in a file's report: those that were not simply booked."""


class LineOutcome(StrEnum):
    """The outcome of an entry that was not simply booked."""

    SENT_BACK = "SENT_BACK"
    HELD = "HELD"
    RETURNED = "RETURNED"
    NOTED = "NOTED"
    FITS_NO_ENTRY = "FITS_NO_ENTRY"
    LISTED = "LISTED"


class AchFileReport(msgspec.Struct):
    """The report of a processed file. Amounts are cents."""

    entries: int = 0
    credits: int = 0
    debits: int = 0
    taken: int = 0
    sent_back: int = 0
    held: int = 0
    returns: int = 0
    changes: int = 0
    listed: int = 0
    lines: list[dict[str, Any]] = []
    stuck: list[StuckLine] = []

    def name(self, line: EntryLine, outcome: LineOutcome, code: str | None = None, reason: str = "") -> None:
        """List an entry with its outcome, and with the reason if the code does not state it."""
        self.listed += outcome == LineOutcome.LISTED
        if len(self.lines) < REPORTED_LINES_MAX:
            named = {"line": line.number, "trace": line.entry.trace_number, "outcome": outcome, "code": code}
            self.lines.append(named | ({"reason": reason} if reason else {}))


_CARD_CLASS = "SHR"
"""The entry class that has a card number in place of a name."""
_ROUTING_DIGITS = 9


class CheckedFile(NamedTuple):
    """The header of a file, and the errors of whole batches, by the lines of their headers."""

    head: AchFile
    batch_mistakes: dict[int, str]


def incoming_of(line: EntryLine, data_key: DataKey, bank_key: DataKey) -> IncomingEntry:
    """Return an entry with the fields of its batch; accounts, identifications and texts are sealed.

    The company identification is sealed with the bank's key, because returns are batched by it.
    """
    entry, batch = line.entry, line.batch
    seal_text = partial(PartyField.TEXT.seal, data_key)
    texts = [each.payment_related_information for each in entry.addenda if isinstance(each, PaymentAddenda)]
    has_card = batch.standard_entry_class_code == _CARD_CLASS
    return IncomingEntry(
        code=entry.transaction_code,
        amount=entry.amount,
        account_number=PartyField.ACCOUNT.seal(data_key, entry.dfi_account_number),
        name=seal_text(entry.individual_name) if has_card else entry.individual_name,
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


def check_file(raw: bytes, routing_number: str) -> CheckedFile:
    """Check and return a file addressed to this routing number. Raises InvalidFile if its format is invalid."""
    batch_mistakes = read_batch_mistakes(raw)
    head = read_header(raw)
    # Some banks put a digit instead of a blank in the column before the number.
    if head.immediate_destination[-_ROUTING_DIGITS:] != routing_number:
        reason = f"is addressed to {head.immediate_destination}, and this bank is {routing_number}"
        raise InvalidFile([AchFileMistake(1, (4, 13), reason)])
    return CheckedFile(head, batch_mistakes)
