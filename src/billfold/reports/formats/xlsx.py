"""A workbook: balances on one sheet, entries on the next. Texts are never interpreted as formulas."""

import asyncio
from datetime import UTC, date, datetime
from typing import IO

from billfold.platform.dates import iso_z
from billfold.reports.entries.types import AccountEntry, AccountStatement
from billfold.reports.formats.files import StatementFile, plain

_OPTIONS = {
    "constant_memory": True,
    "default_date_format": "yyyy-mm-dd",
    "strings_to_numbers": False,
    "strings_to_formulas": False,
    "strings_to_urls": False,
}
_ROWS_MAX = 1_048_576
_CELL_MAX = 32_767
_CENTS = 100
_BALANCE_COLUMNS = (
    "Pocket", "Account", "Owner", "Routing number", "Account number", "From", "Through", "Currency",
    "Opening balance", "Credits", "Debits", "Closing balance", "Closed",
)  # fmt: skip
_ENTRY_COLUMNS = (
    "Pocket", "Account number", "Booked on", "Booked at", "Value on", "Kind", "Amount", "Title", "Description",
    "Counterparty", "Remittance", "References", "CUSIP", "Units", "Reversal", "Reference", "Transaction",
    "External id", "Metadata",
)  # fmt: skip
_WIDTH = 18
Cell = str | int | float | date | None


async def write_xlsx(file: StatementFile, output: IO[bytes]) -> None:
    """Write statements; rows beyond the limit of a sheet continue on another."""
    sheets = _Sheets(output, file.made_at)
    sheets.begin("Balances", _BALANCE_COLUMNS)
    for statement in file.statements:
        sheets.write(_balance_row(statement))
    sheets.begin("Entries", _ENTRY_COLUMNS)
    for statement in file.statements:
        async for page in file.entries(statement):
            for entry in page:
                sheets.write(_entry_row(statement, entry))
    # Compression happens at the end, in a thread, so that other work of this process continues.
    await asyncio.to_thread(sheets.close)


class _Sheets:
    """Writes rows, and continues on another sheet when one is full."""

    def __init__(self, output: IO[bytes], made_at: datetime) -> None:
        from xlsxwriter import Workbook  # noqa: PLC0415 - only a workbook needs its 40 modules

        self._workbook = workbook = Workbook(output, _OPTIONS)
        self.close = workbook.close
        # The same statements give the same file.
        workbook.set_properties({"created": made_at.astimezone(UTC).replace(tzinfo=None)})
        self._bold = workbook.add_format({"bold": True})
        self._money = workbook.add_format({"num_format": "#,##0.00"})
        self._row = 0
        self._number = 0

    def begin(self, name: str, columns: tuple[str, ...]) -> None:
        """Begin a sheet with its header."""
        self._number = 0
        self._name, self._columns = name, columns
        self._next_sheet()

    def _next_sheet(self) -> None:
        self._number += 1
        self._sheet = self._workbook.add_worksheet(self._name if self._number == 1 else f"{self._name} {self._number}")
        self._sheet.set_column(0, len(self._columns) - 1, _WIDTH)
        self._sheet.freeze_panes(1, 0)
        self._sheet.write_row(0, 0, self._columns, self._bold)
        self._row = 1

    def write(self, cells: tuple[Cell, ...]) -> None:
        """Write a row: floats are amounts of money."""
        if self._row == _ROWS_MAX:
            self._next_sheet()
        for column, cell in enumerate(cells):
            if isinstance(cell, str):
                self._sheet.write_string(self._row, column, plain(cell)[:_CELL_MAX])
            elif isinstance(cell, float):
                self._sheet.write_number(self._row, column, cell, self._money)
            elif cell is not None:
                self._sheet.write(self._row, column, cell)
        self._row += 1


def _balance_row(statement: AccountStatement) -> tuple[Cell, ...]:
    account, period, totals = statement.account, statement.period, statement.totals
    amounts = statement.opening.value, totals.credited, -totals.debited, statement.closing.value
    return (
        account.name,
        account.type.value,
        account.owner,
        account.routing_number,
        account.number,
        period.first_day,
        period.last_day,
        account.currency,
        *(cents / _CENTS for cents in amounts),
        "yes" if period.is_closed else "no",
    )


def _entry_row(statement: AccountStatement, entry: AccountEntry) -> tuple[Cell, ...]:
    return (
        statement.account.name,
        statement.account.number,
        entry.booked_on,
        iso_z(entry.booked_at),
        entry.value_on,
        entry.kind.value,
        entry.amount / _CENTS,
        entry.title,
        entry.description,
        entry.counterparty,
        " ".join((*entry.remittance, *entry.words_of_documents)),
        " ".join(entry.references.all),
        entry.security.cusip if entry.security else None,
        entry.units,
        "yes" if entry.is_reversal else "no",
        entry.reference,
        str(entry.transaction_id) if entry.transaction_id else None,
        entry.external_id,
        "; ".join(f"{name}={text}" for name, text in entry.metadata.items()) or None,
    )
