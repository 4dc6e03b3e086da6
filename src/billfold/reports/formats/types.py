"""A file of statements, and what every format says of its entries."""

from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import datetime
from hashlib import blake2b
from typing import IO, NamedTuple, TypeAlias

from billfold.reports.entries.types import AccountEntry, AccountStatement, EntryKind


class StatementFile(NamedTuple):
    """Statements of one type of account and one period, at least one, and how the entries of each are read."""

    statements: tuple[AccountStatement, ...]
    entries: Callable[[AccountStatement], AsyncIterator[list[AccountEntry]]]

    @property
    def made_at(self) -> datetime:
        """The instant up to which the file says everything."""
        return self.statements[0].period.ends_at

    @property
    def number(self) -> int:
        """A number of 48 bits that no other file has but the same one made again."""
        content = blake2b(digest_size=6, person=b"statement file")
        for each in self.statements:
            content.update(statement_reference(each).encode())
            content.update(f"{each.entries_after} {each.position.entry_no} {each.position.chain}".encode())
        return int.from_bytes(content.digest())

    @property
    def reference(self) -> str:
        """The same as 14 characters."""
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
    """What the formats call a kind of entry: of each pair the first is that of a credit.

    `camt` are domain, family and sub-family of ISO 20022, `bai` type codes of BAI2, `swift` a type of field 61 of an
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
    """Return what the formats call an entry; bills that moved in kind are no sweep, and ACH also collects."""
    if entry.units is not None:
        return _BILLS
    return _DIRECT_DEBIT if entry.is_direct_debit and entry.kind == EntryKind.ACH else ENTRY_CODES[entry.kind]


Writer: TypeAlias = Callable[[StatementFile, IO[bytes]], Awaitable[None]]
"""Writes a file to an open one, entry by entry."""
