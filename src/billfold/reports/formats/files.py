"""A file of statements, the codes of its entries in every format, and escaping of texts for each format."""

import re
import unicodedata
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import datetime
from hashlib import blake2b
from html import escape
from typing import IO, NamedTuple, TypeAlias

from anyascii import anyascii

from billfold.reports.entries.types import AccountEntry, AccountStatement, EntryKind

# Characters that XML 1.0 does not allow, control characters, and bidirectional controls.
_UNSAFE = re.compile(
    "[\\x00-\\x1f\\x7f-\\x9f\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069\\ufeff\\ufffe\\uffff\\ud800-\\udfff]+"
)
_NOT_SWIFT = re.compile(r"[^A-Za-z0-9/\-:().,'+ ]")
_NOT_PRINTABLE = re.compile(r"[^ -~]+")
_BAI_DELIMITERS = str.maketrans({",": ";", "/": "-"})


def plain(text: str) -> str:
    """Return a text on one line, in any script, without control characters."""
    return " ".join(_UNSAFE.sub(" ", text).split())


def cut(text: str, length: int) -> str:
    """Return the beginning of a text, on one line and without control characters."""
    return plain(text)[:length].rstrip()


def ascii_text(text: str) -> str:
    """Return a text on one line in ASCII; other characters are transliterated to Latin letters."""
    text = plain(text)
    if not text.isascii():
        text = plain(_NOT_PRINTABLE.sub(" ", anyascii(unicodedata.normalize("NFKC", text))))
    return text


def swift_text(text: str) -> str:
    """Return a text in SWIFT's character set x, on one line; characters outside it become full stops."""
    return _NOT_SWIFT.sub(".", ascii_text(text).replace("&", "+").replace("_", "-"))


def swift_reference(text: str, length: int) -> str:
    """Return a reference: no slash at either end, none next to another."""
    return re.sub("/{2,}", "/", swift_text(text)[:length]).strip("/ ")


def swift_lines(text: str, width: int, count: int) -> list[str]:
    """Return a text as lines, none of which begins like a field or like the end of the message."""
    lines: list[str] = []
    rest = swift_text(text)
    while rest and len(lines) < count:
        if rest[0] in ":-":
            rest = "." + rest
        lines.append(rest[:width].rstrip())
        rest = rest[width:].lstrip()
    return lines


def bai_text(text: str) -> str:
    """Return a text without the delimiters of BAI2."""
    return ascii_text(text).translate(_BAI_DELIMITERS)


def decimal(cents: int) -> str:
    """Return cents as dollars with two decimals and without a sign."""
    dollars, rest = divmod(abs(cents), 100)
    return f"{dollars}.{rest:02d}"


class Xml(str):
    """Text that is already XML."""

    __slots__ = ()


NOTHING = Xml()


def node(name: str, *content: str) -> Xml:
    """Return an element with this text, which is escaped, or with these elements.

    Returns an empty text for an element without content, which few schemas allow.
    """
    inside = "".join([each if each.__class__ is Xml else escape(each, quote=False) for each in content])
    return Xml(f"<{name}>{inside}</{name}>") if inside else NOTHING


class StatementFile(NamedTuple):
    """Statements (at least one) of one type of account and one period, and how to read the entries of each."""

    statements: tuple[AccountStatement, ...]
    entries: Callable[[AccountStatement], AsyncIterator[list[AccountEntry]]]

    @property
    def made_at(self) -> datetime:
        """The instant up to which the file is complete."""
        return self.statements[0].period.ends_at

    @property
    def number(self) -> int:
        """A 48-bit number that is unique to the file, and the same when it is made again."""
        content = blake2b(digest_size=6, person=b"statement file")
        for each in self.statements:
            content.update(statement_reference(each).encode())
            content.update(f"{each.entries_after} {each.position.entry_no} {each.position.chain}".encode())
        return int.from_bytes(content.digest())

    @property
    def reference(self) -> str:
        """The number as 14 characters."""
        return f"{self.statements[0].account.type[:2]}{self.number:012X}"


def statement_reference(statement: AccountStatement) -> str:
    """Return the reference of a statement, 35 characters: type of account, days and Pocket."""
    account, period = statement.account, statement.period
    days = f"{period.first_day:%y%m%d}{period.last_day:%y%m%d}"
    return f"{account.type[:2]}{days}-{account.pocket_id.hex[-20:].upper()}"


def notification_reference(statement: AccountStatement) -> str:
    """Return the reference of a notification, 35 characters: type of account, journal entries and Pocket."""
    account, entries = statement.account, f"{statement.entries_after:08X}{statement.position.entry_no:08X}"
    return f"{account.type[:2]}{entries}-{account.pocket_id.hex[-16:].upper()}"


class EntryCodes(NamedTuple):
    """The codes of a kind of entry in each format: in each pair the first is for a credit.

    `camt` are domain, family and sub-family of ISO 20022, `bai` type codes of BAI2, `swift` a type in field 61 of
    MT940, `ofx` transaction types.
    """

    camt: tuple[str, str]
    bai: tuple[str, str]
    swift: str
    ofx: tuple[str, str]


_SWEEP = EntryCodes(("CAMT/ACCB/SWEP",) * 2, ("347", "656"), "NCMS", ("XFER", "XFER"))
_TRANSFER = _SWEEP._replace(bai=("201", "501"))
ENTRY_CODES = {
    EntryKind.ACH: EntryCodes(("PMNT/RCDT/ACDT", "PMNT/ICDT/ACDT"), ("142", "469"), "NTRF", ("DIRECTDEP", "PAYMENT")),
    EntryKind.CARD: EntryCodes(("PMNT/CCRD/RIMB", "PMNT/CCRD/POSD"), ("399", "699"), "NMSC", ("POS", "POS")),
    EntryKind.CREDIT: EntryCodes(("PMNT/MCOP/OTHR", "PMNT/MDOP/OTHR"), ("399", "699"), "NMSC", ("CREDIT", "DEBIT")),
    EntryKind.CRYPTO: EntryCodes(("PMNT/RCDT/OTHR", "PMNT/ICDT/OTHR"), ("399", "699"), "NTRF", ("CREDIT", "DEBIT")),
    EntryKind.FEE: EntryCodes(("PMNT/MCOP/CHRG", "PMNT/MDOP/CHRG"), ("398", "698"), "NCHG", ("CREDIT", "SRVCHG")),
    EntryKind.GENERIC: EntryCodes(("PMNT/MCOP/OTHR", "PMNT/MDOP/OTHR"), ("399", "699"), "NMSC", ("CREDIT", "DEBIT")),
    EntryKind.ONUS: EntryCodes(("PMNT/RCDT/BOOK", "PMNT/ICDT/BOOK"), ("206", "506"), "NTRF", ("XFER", "XFER")),
    EntryKind.WIRE: EntryCodes(("PMNT/RCDT/DMCT", "PMNT/ICDT/DMCT"), ("195", "495"), "NTRF", ("CREDIT", "DEBIT")),
    EntryKind.SWEEP: _SWEEP,
    EntryKind.ADDITION: _TRANSFER,
    EntryKind.SUBTRACTION: _TRANSFER,
    EntryKind.GAIN_LOSS: EntryCodes(("SECU/NTAV/NTAV",) * 2, ("249", "549"), "NMSC", ("OTHER", "OTHER")),
    EntryKind.AUM_FEE: EntryCodes(("SECU/CASH/FEES",) * 2, ("398", "698"), "NCHG", ("OTHER", "SRVCHG")),
}
_DIRECT_DEBIT = EntryCodes(("PMNT/IDDT/OTHR", "PMNT/RDDT/OTHR"), ("165", "451"), "NDDT", ("CREDIT", "DIRECTDEBIT"))
_BILLS = EntryCodes(("SECU/SETT/OTHR",) * 2, ("249", "549"), "NSEC", ("OTHER", "OTHER"))


def codes_of(entry: AccountEntry) -> EntryCodes:
    """Return the codes of an entry; a transfer in kind is not a sweep, and ACH also collects."""
    if entry.units is not None:
        return _BILLS
    return _DIRECT_DEBIT if entry.is_direct_debit and entry.kind == EntryKind.ACH else ENTRY_CODES[entry.kind]


Writer: TypeAlias = Callable[[StatementFile, IO[bytes]], Awaitable[None]]
"""Writes a file to an open stream, entry by entry."""
