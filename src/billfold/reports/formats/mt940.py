"""MT940, the SWIFT customer statement message, as banks provide it in files: one message per statement."""

from collections.abc import Iterator
from datetime import date
from typing import IO

from billfold.reports.entries.types import AccountEntry, AccountStatement
from billfold.reports.formats.files import StatementFile, codes_of, decimal, swift_lines, swift_reference

_REFERENCE, _ACCOUNT, _SUPPLEMENT, _WIDTH, _LINES = 16, 35, 34, 65, 6
_END_OF_LINE = "\r\n"


async def write_mt940(file: StatementFile, output: IO[bytes]) -> None:
    """Write statements in the character set x; other characters are transliterated to Latin letters."""
    for statement in file.statements:
        _write(output, _opening(statement, file.reference))
        async for page in file.entries(statement):
            for entry in page:
                _write(output, _entry(entry))
        _write(output, _closing(statement))


def _write(output: IO[bytes], lines: Iterator[str]) -> None:
    output.write("".join(line + _END_OF_LINE for line in lines).encode("ascii"))


def _opening(statement: AccountStatement, reference: str) -> Iterator[str]:
    account, period = statement.account, statement.period
    yield f":20:{reference}"
    yield f":25:{swift_reference(f'{account.routing_number}/{account.own_number}', _ACCOUNT)}"
    yield f":28C:{int(f'{period.last_day:%j}'):05d}/001"
    yield f":60F:{_balance(statement.opening.value, period.first_day)}"


def _closing(statement: AccountStatement) -> Iterator[str]:
    yield f":62F:{_balance(statement.closing.value, statement.period.last_day)}"
    yield "-"


def _balance(cents: int, day: date) -> str:
    return f"{'D' if cents < 0 else 'C'}{day:%y%m%d}USD{_amount(cents)}"


def _entry(entry: AccountEntry) -> Iterator[str]:
    # Programs that know only C and D misread the marks RC and RD of reversals as the wrong side.
    mark = "C" if entry.amount > 0 else "D"
    own = swift_reference(entry.own_reference(_REFERENCE), _REFERENCE)
    line = f"{entry.value_on:%y%m%d}{entry.booked_on:%m%d}{mark}{_amount(entry.amount)}{codes_of(entry).swift}"
    yield f":61:{line}{own or 'NONREF'}//{_bank_reference(entry)}"
    yield from swift_lines(entry.title, _SUPPLEMENT, 1)
    security = f"CUSIP {entry.security.cusip}" if entry.security else ""
    units = "" if entry.units is None else f"{entry.units} units"
    texts = entry.counterparty, *entry.purpose
    reversal = "REVERSAL" if entry.is_reversal else ""
    parts = filter(None, (entry.kind.value, reversal, security, units, *texts, *entry.references.all))
    narrative = swift_lines(" ".join(parts), _WIDTH, _LINES)
    yield f":86:{narrative[0]}"
    yield from narrative[1:]


def _bank_reference(entry: AccountEntry) -> str:
    """Return the end of a reference, which is unique within an instant; for a gain, its bill."""
    return entry.security.cusip if entry.security and entry.units is None else entry.reference[-_REFERENCE:]


def _amount(cents: int) -> str:
    return decimal(cents).replace(".", ",")
