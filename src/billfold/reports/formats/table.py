"""The formats of statements by their names, and a file of statements of several Pockets."""

from collections.abc import Iterable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Final

from billfold.ledger.bank import Bank
from billfold.reports.entries.reader import Wanted, list_entries, read_statement
from billfold.reports.formats.bai2 import write_bai2
from billfold.reports.formats.camt import write_camt052, write_camt053, write_camt054
from billfold.reports.formats.mt940 import write_mt940
from billfold.reports.formats.ofx import write_ofx
from billfold.reports.formats.types import StatementFile, Writer
from billfold.reports.formats.xlsx import write_xlsx

WRITERS: Final[Mapping[str, Writer]] = MappingProxyType(
    {
        "CAMT053": write_camt053,
        "CAMT052": write_camt052,
        "CAMT054": write_camt054,
        "BAI2": write_bai2,
        "OFX": write_ofx,
        "MT940": write_mt940,
        "XLSX": write_xlsx,
    }
)


async def read_file(bank: Bank, wanted: Iterable[Wanted]) -> StatementFile:
    """Return a file of these accounts, all of one type and period, whose balances have been read and agree.

    Raises NotFound, InvariantError.
    """
    return StatementFile(tuple([await read_statement(bank, each) for each in wanted]), partial(list_entries, bank))
