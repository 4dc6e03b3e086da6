"""The content of a NACHA file, inbound or outbound. Field names are those of Nacha's Appendix Three.

A file has batches; a batch has entries of one company and purpose; an entry moves money on one
account, returns an entry or reports a change. Amounts are cents. Texts are printable ASCII, upper
case.
"""

import unicodedata
from collections.abc import Iterator
from contextlib import suppress
from datetime import date, datetime
from io import BytesIO
from typing import NamedTuple

import msgspec
from typing_extensions import override

from billfold.payments.ach.nacha import layout
from billfold.payments.files.types import InvalidFile

NOC_ENTRY_CLASS = "COR"
"""The standard entry class code of notifications of change."""
INTERNATIONAL, ADVICE, DEATH_NOTICE = "IAT", "ADV", "DNE"
"""Entry classes: international entries and accounting advices, whose entries have their own layouts, and
notices of federal agencies that a person has died."""
_INTERNATIONAL_NOC = "IATCOR"
"""The company name of a batch of notifications of change of international entries."""


class PaymentAddenda(msgspec.Struct, frozen=True, tag="05"):
    """Addenda 05: payment-related information, at most 80 characters."""

    payment_related_information: str


class NocAddenda(msgspec.Struct, frozen=True, kw_only=True, tag="98"):
    """Addenda 98: a notification of change from the receiving bank."""

    change_code: str  # C01 to C14; C61 to C69: the originator's bank refuses such a notification
    original_entry_trace_number: str
    original_receiving_dfi_identification: str  # 8 digits, of the bank that received the entry
    corrected_data: str  # at most 29 characters
    refused_change_code: str = ""  # of a refusal: the code that is refused
    refused_trace_sequence_number: str = ""  # of a refusal: the last digits of the trace number that is refused


class ReturnAddenda(msgspec.Struct, frozen=True, kw_only=True, tag="99"):
    """Addenda 99: the entry is returned."""

    return_reason_code: str  # R01 to R85
    original_entry_trace_number: str
    original_receiving_dfi_identification: str  # 8 digits, of the bank that received the entry
    date_of_death: date | None = None  # R14 and R15 only
    addenda_information: str = ""  # at most 44 characters


class OtherAddenda(msgspec.Struct, frozen=True, kw_only=True, tag="other"):
    """Any other addenda, unchanged: 02 of terminals, 10 to 18 of international entries."""

    addenda_type_code: str
    text: str  # from column 4 on


Addenda = PaymentAddenda | NocAddenda | ReturnAddenda | OtherAddenda


class Entry(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One entry detail record with its addenda."""

    transaction_code: str  # transaction code: 22, 27, 32, 37; x1 and x6 are returns, x3 and x8 prenotes
    routing_number: str  # 9 digits, of the bank that receives
    dfi_account_number: str  # at most 17 characters; 35 of international entries
    amount: int  # cents; 0 in prenotes and notifications of change
    individual_name: str  # of the receiver, at most 22 characters
    trace_number: str  # 15 digits: the bank that sends (8) and its own number (7)
    individual_identification_number: str = ""  # at most 15 characters
    discretionary_data: str = ""  # 2 characters; of WEB the payment type, R or S
    addenda: tuple[Addenda, ...] = ()

    @property
    def is_debit(self) -> bool:
        """True if it debits the receiver's account; for an advice, if it is about debits."""
        way = self.transaction_code[1]
        return way in "2468" if self.transaction_code[0] == "8" else way >= "5"


class Batch(msgspec.Struct, frozen=True, kw_only=True):
    """Entries of one company, one entry class and one effective date.

    When a file is streamed, a batch has the header fields only and no entries.
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
    company_descriptive_date: str = ""  # 6 characters; SD1300 and the like request same-day windows
    settlement_date: int | None = None  # day of the year, set by the operator

    @property
    def is_international(self) -> bool:
        """True if its entries have the layout of international entries."""
        entry_class = self.standard_entry_class_code
        return entry_class == INTERNATIONAL or (
            entry_class == NOC_ENTRY_CLASS and self.company_name == _INTERNATIONAL_NOC
        )


class AchFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file from one bank or operator to another."""

    immediate_destination: str  # 9 digits
    immediate_origin: str  # at most 10 characters
    created_at: datetime  # minutes, Eastern time, no offset
    file_id_modifier: str  # A to Z, 0 to 9: the file of the day
    immediate_destination_name: str = ""  # at most 23 characters
    immediate_origin_name: str = ""  # at most 23 characters
    reference_code: str = ""  # at most 8 characters
    batches: tuple[Batch, ...] = ()


class AchFileMistake(NamedTuple):
    """One mistake and its place. Lines and columns count from 1; line 0 is the whole file."""

    line: int
    columns: tuple[int, int] | None
    reason: str

    @override
    def __str__(self) -> str:
        where = f"line {self.line}" if self.line else "file"
        if self.columns:
            where += f", columns {self.columns[0]}-{self.columns[1]}"
        return f"{where}: {self.reason}"


class EntryLine(NamedTuple):
    """An entry with its line number (from 1) and the header of its batch.

    `mistake` is the error in the entry, if any; `batch_at` is the line of the header.
    """

    number: int
    batch: Batch
    entry: Entry
    mistake: str = ""
    batch_at: int = 0

    @property
    def returned(self) -> ReturnAddenda | None:
        """The return addenda, if it has one."""
        return next((each for each in self.entry.addenda if isinstance(each, ReturnAddenda)), None)

    @property
    def changed(self) -> NocAddenda | None:
        """The notification of change, if it has one."""
        return next((each for each in self.entry.addenda if isinstance(each, NocAddenda)), None)

    @property
    def original_trace(self) -> str | None:
        """The trace number of the entry that it returns or corrects."""
        addenda = self.returned or self.changed
        return None if addenda is None else addenda.original_entry_trace_number

    @property
    def code(self) -> str | None:
        """The code with which it returns or corrects another."""
        if self.returned is not None:
            return self.returned.return_reason_code
        return None if self.changed is None else self.changed.change_code


HASH_DIGITS = 10_000_000_000
"""An entry hash keeps the rightmost ten digits."""


class ControlTotals(NamedTuple):
    """The totals of a control record. The count includes addenda; totals are cents."""

    entry_count: int = 0
    entry_hash: int = 0
    debit_total: int = 0
    credit_total: int = 0


class TotalsCounter:
    """Adds up entries, or the totals of batches."""

    def __init__(self) -> None:
        self._count = self._hash = self._debits = self._credits = 0
        self._has_debits = self._has_credits = False

    def add(self, entry: Entry) -> None:
        """Count an entry and its addenda."""
        self._count += 1 + len(entry.addenda)
        self._hash += int(entry.routing_number[:8])
        if entry.is_debit:
            self._debits += entry.amount
            self._has_debits = True
        else:
            self._credits += entry.amount
            self._has_credits = True

    def add_batch(self, batch: ControlTotals) -> None:
        """Count a whole batch."""
        self._count += batch.entry_count
        self._hash += batch.entry_hash
        self._debits += batch.debit_total
        self._credits += batch.credit_total

    @property
    def sums(self) -> ControlTotals:
        """The totals for the control record."""
        return ControlTotals(self._count, self._hash % HASH_DIGITS, self._debits, credit_total=self._credits)

    @property
    def service_class(self) -> str:
        """200 for debits and credits, 220 for credits only, 225 for debits only."""
        if self._has_debits and self._has_credits:
            return "200"
        return "225" if self._has_debits else "220"


_MARK = b"\xef\xbb\xbf"
"""Marks that some systems put before a text."""
_END = b"\r\n\x1a\x00"
"""Marks that some systems put after a text."""


def normalize(raw: bytes) -> bytes:
    """Return the file with LF line ends."""
    raw = raw.removeprefix(_MARK)
    content = raw.rstrip(_END)
    if content and raw[len(content) :] == b"\n" and b"\r" not in raw:
        return raw
    if b"\n" not in content and b"\r" not in content and len(content) % layout.WIDTH == 0:
        starts = range(0, len(content), layout.WIDTH)
        return b"".join(content[at : at + layout.WIDTH] + b"\n" for at in starts)
    return content.replace(b"\r\n", b"\n").replace(b"\r", b"\n") + b"\n" if content else content


def lines_of(raw: bytes) -> Iterator[str]:
    """Yield the lines one by one, without splitting a large file at once. Raises InvalidFile if there are none."""
    content = normalize(raw)
    if not content.strip():
        raise InvalidFile([AchFileMistake(0, None, "is empty")])
    for line in BytesIO(content):
        yield _text_of(line.removesuffix(b"\n"))


def _text_of(line: bytes) -> str:
    """Return a line in printable ASCII, one character for each column.

    A character outside ASCII is one byte, or several of UTF-8: whichever fills the columns.
    """
    text = line.decode("latin-1")
    if text.isascii() and text.isprintable():
        return text
    if len(text) != layout.WIDTH:
        with suppress(UnicodeDecodeError):
            text = line.decode()
    return "".join(map(_to_ascii, text))


def _to_ascii(character: str) -> str:
    if character.isascii() and character.isprintable():
        return character
    base = unicodedata.normalize("NFKD", character)[0]
    return base if base.isascii() and base.isprintable() else "?"
