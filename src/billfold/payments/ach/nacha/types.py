"""The ACH network: what a file of entries says, whichever way it goes.

A file holds batches, a batch holds entries of one company and purpose, an entry moves money on one
account or tells of an entry that did. Amounts are cents. Texts are what the network carries:
printable ASCII, upper case.
"""

from collections.abc import Sequence
from datetime import date, datetime
from typing import NamedTuple

import msgspec
from typing_extensions import override

CHECKING_CREDIT = "22"
CHECKING_DEBIT = "27"
SAVINGS_CREDIT = "32"
SAVINGS_DEBIT = "37"
NOC_ENTRY_CLASS = "COR"
"""The standard entry class of a batch of notifications of change."""


class PaymentAddenda(msgspec.Struct, frozen=True, tag="05"):
    """Addenda 05: what the payment is for, at most 80 characters."""

    payment_related_information: str


class NocAddenda(msgspec.Struct, frozen=True, kw_only=True, tag="98"):
    """Addenda 98: the receiving bank says what to put right in entries to come."""

    change_code: str  # C01 to C14
    original_entry_trace_number: str
    original_receiving_dfi_identification: str  # 8 digits, of the bank that received the entry
    corrected_data: str  # at most 29 characters


class ReturnAddenda(msgspec.Struct, frozen=True, kw_only=True, tag="99"):
    """Addenda 99: the entry comes back."""

    return_reason_code: str  # R01 to R85
    original_entry_trace_number: str
    original_receiving_dfi_identification: str  # 8 digits, of the bank that received the entry
    date_of_death: date | None = None  # R14 and R15 only
    addenda_information: str = ""  # at most 44 characters


Addenda = PaymentAddenda | NocAddenda | ReturnAddenda


class Entry(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One entry."""

    transaction_code: str  # transaction code: 22, 27, 32, 37; x1 and x6 are returns, x3 and x8 prenotes
    routing_number: str  # 9 digits, of the bank that receives
    dfi_account_number: str  # at most 17 characters
    amount: int  # cents; 0 in prenotes and notifications of change
    individual_name: str  # of the receiver, at most 22 characters
    trace_number: str  # 15 digits: the bank that sends (8) and its own number (7)
    individual_identification_number: str = ""  # at most 15 characters
    discretionary_data: str = ""  # 2 characters; of WEB the payment type, R or S
    addenda: tuple[Addenda, ...] = ()

    @property
    def is_debit(self) -> bool:
        """Whether money is taken from the account of the receiver."""
        return self.transaction_code[1] >= "5"


class Batch(msgspec.Struct, frozen=True, kw_only=True):
    """Entries of one company, one class and one effective date.

    Where a file is read or written entry by entry, a batch stands for its header: it has none.
    """

    batch_number: int  # in its file, from 1
    company_name: str  # name, at most 16 characters
    company_identification: str  # at most 10 characters
    standard_entry_class_code: str  # CCD, PPD, WEB; COR of notifications of change
    company_entry_description: str  # company entry description, at most 10 characters
    effective_entry_date: date | None
    originating_dfi_identification: str  # 8 digits, of the bank that sends
    entries: tuple[Entry, ...] = ()
    company_discretionary_data: str = ""  # at most 20 characters
    company_descriptive_date: str = ""  # 6 characters; SD1300 and the like ask for same-day windows
    settlement_date: int | None = None  # day of the year, written by the operator

    @property
    def debits(self) -> int:
        """What is taken, in cents."""
        return sum(each.amount for each in self.entries if each.is_debit)

    @property
    def credits(self) -> int:
        """What is given, in cents."""
        return sum(each.amount for each in self.entries if not each.is_debit)


class AchFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file, as one bank or operator hands it to another."""

    immediate_destination: str  # 9 digits
    immediate_origin: str  # at most 10 characters
    created_at: datetime  # minutes, Eastern time as the network reads clocks; no offset
    file_id_modifier: str  # A to Z, 0 to 9: the file of the day
    immediate_destination_name: str = ""  # at most 23 characters
    immediate_origin_name: str = ""  # at most 23 characters
    reference_code: str = ""  # at most 8 characters
    batches: tuple[Batch, ...] = ()


MISTAKES_MAX = 100
"""Mistakes of one file that are told; nobody reads more."""


class AchFileMistake(NamedTuple):
    """One thing that is wrong, and where. Lines and columns count from 1; 0 is the whole file."""

    line: int
    columns: tuple[int, int] | None
    reason: str

    @override
    def __str__(self) -> str:
        where = f"line {self.line}" if self.line else "file"
        if self.columns:
            where += f", columns {self.columns[0]}-{self.columns[1]}"
        return f"{where}: {self.reason}"


class InvalidAchFile(ValueError):
    """Nothing of the file is taken. `mistakes` names lines and reasons, the first hundred."""

    def __init__(self, mistakes: Sequence[AchFileMistake]) -> None:
        self.mistakes = tuple(mistakes[:MISTAKES_MAX])
        super().__init__("; ".join(map(str, self.mistakes[:3])))


class EntryLine(NamedTuple):
    """An entry, where it stands in its file (from 1), and the header of its batch."""

    number: int
    batch: Batch
    entry: Entry

    @property
    def returned(self) -> ReturnAddenda | None:
        """The return it tells of, if it does."""
        return next((each for each in self.entry.addenda if isinstance(each, ReturnAddenda)), None)

    @property
    def changed(self) -> NocAddenda | None:
        """The change it tells of, if it does."""
        return next((each for each in self.entry.addenda if isinstance(each, NocAddenda)), None)
