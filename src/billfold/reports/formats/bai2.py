"""BAI2, the cash management balance reporting of US banks: one group of accounts per file."""

from collections.abc import Iterable
from textwrap import wrap
from typing import IO

from billfold.platform.dates import ET
from billfold.reports.entries.types import AccountEntry, AccountStatement
from billfold.reports.formats.files import StatementFile, bai_text, codes_of

_WIDTH, _BANK_REFERENCE, _OWN_REFERENCE = 80, 16, 24
_OPENING_LEDGER, _CLOSING_LEDGER, _TOTAL_CREDITS, _TOTAL_DEBITS = "010", "015", "100", "400"
_PREVIOUS_DAY, _SAME_DAY = "2", "3"


class _Records:
    """Writes records of up to 80 characters and counts them."""

    def __init__(self, output: IO[bytes]) -> None:
        self._output = output
        self.count = 0

    def write(self, fields: Iterable[str], text: str = "") -> None:
        """Write a record, continued if its last field, a text, is too long for it."""
        lines = [",".join(fields) + (f",{text}" if text else "/")]
        if len(lines[0]) > _WIDTH:
            record = lines[0].removesuffix(text)
            lines = wrap(text, _WIDTH, initial_indent=record, subsequent_indent="88,", break_on_hyphens=False)
        self._output.write("".join(f"{line}\r\n" for line in lines).encode("ascii"))
        self.count += len(lines)


async def write_bai2(file: StatementFile, output: IO[bytes]) -> None:
    """Write statements in ASCII; other characters are transliterated to Latin letters."""
    records = _Records(output)
    made_at, period = file.made_at.astimezone(ET), file.statements[0].period
    bank = file.statements[0].account.routing_number
    # BAI2 identifies a file by a number of up to 9 digits per sender and day.
    number = str(file.number % 10**9)
    stamp = f"{made_at:%y%m%d}", f"{made_at:%H%M}"
    records.write(["01", bank, bank, *stamp, number, "", "", "2"])
    modifier = _PREVIOUS_DAY if period.is_closed else _SAME_DAY
    as_of = f"{period.last_day:%y%m%d}", "2400" if period.is_closed else stamp[1]
    records.write(["02", bank, bank, "1", *as_of, "USD", modifier])
    total = 0
    for statement in file.statements:
        total += await _write_account(file, statement, records)
    records.write(["98", str(total), str(len(file.statements)), str(records.count)])
    records.write(["99", str(total), "1", str(records.count + 1)])


async def _write_account(file: StatementFile, statement: AccountStatement, records: _Records) -> int:
    """Write an account and return its control total: all amounts of its records."""
    account, totals = statement.account, statement.totals
    before = records.count
    opening, closing = statement.opening.value, statement.closing.value
    records.write(["03", bai_text(account.own_number), account.currency, _OPENING_LEDGER, str(opening), "", ""])
    for code, cents, count in (
        (_CLOSING_LEDGER, closing, ""),
        (_TOTAL_CREDITS, totals.credited, str(totals.credits)),
        (_TOTAL_DEBITS, totals.debited, str(totals.debits)),
    ):
        records.write(["88", code, str(cents), count, ""])
    async for page in file.entries(statement):
        for entry in page:
            _write_entry(entry, records)
    total = opening + closing + 2 * (totals.credited + totals.debited)
    records.write(["49", str(total), str(records.count - before + 1)])
    return total


def _write_entry(entry: AccountEntry, records: _Records) -> None:
    code = codes_of(entry).bai[entry.amount < 0]
    bill = f"CUSIP {entry.security.cusip}" if entry.security else None
    units = None if entry.units is None else f"{entry.units} units"
    parts = (entry.kind.value, entry.title, entry.counterparty, *entry.purpose, bill, units)
    text = bai_text(" ".join(filter(None, parts)))
    own = bai_text(entry.own_reference(_OWN_REFERENCE))[:_OWN_REFERENCE]
    references = entry.reference[-_BANK_REFERENCE:], own
    records.write(["16", code, str(abs(entry.amount)), "V", f"{entry.value_on:%y%m%d}", "", *references], text)
