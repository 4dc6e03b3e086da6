"""Third-party readers of statement files: each returns balances and signed amounts, in cents."""

from decimal import Decimal
from functools import cache
from importlib.metadata import distribution
from io import BytesIO
from typing import Any, NamedTuple

import mt940
import openpyxl
from bai2 import bai2
from bai2.constants import TypeCodeTransaction
from lxml import etree
from ofxtools.models import INVBANKTRAN, INVSTMTRS
from ofxtools.Parser import OFXTree
from pycamt.parser import Camt053Parser

from billfold.reports.requests.renderers import WRITERS


class Read(NamedTuple):
    """One statement as a reader finds it; None for balances that the format has no place for."""

    opening: int | None
    closing: int | None
    amounts: list[int]


def cents(amount):
    """Return dollars as cents; a fraction of a cent fails."""
    exact = Decimal(str(amount)) * 100
    assert exact == int(exact)
    return int(exact)


@cache
def schema_of(version):
    """The official schema of a message."""
    return etree.XMLSchema(file=str(distribution("camt053").locate_file(f"camt053/xsd/{version}.xsd")))


def read_camt(content):
    document: Any = etree.fromstring(content)
    version = document.nsmap[None].rpartition(":")[2]
    schema_of(version).assertValid(document)
    signs = {"CRDT": 1, "DBIT": -1}
    for statement in document[0][1:]:
        balances = {
            balance.findtext("{*}Tp//{*}Cd"): signs[balance.findtext("{*}CdtDbtInd")]
            * cents(balance.findtext("{*}Amt"))
            for balance in statement.iterfind("{*}Bal")
        }
        entries = [
            signs[entry.findtext("{*}CdtDbtInd")] * cents(entry.findtext("{*}Amt"))
            for entry in statement.iterfind("{*}Ntry")
        ]
        total = statement.find("{*}TxsSummry/{*}TtlNtries")
        assert cents(total.findtext("{*}Sum")) == sum(map(abs, entries))
        assert int(total.findtext("{*}NbOfNtries")) == len(entries)
        yield Read(balances.get("OPBD"), balances.get("CLBD", balances.get("ITBD")), entries)


def read_camt053(content):
    parser = Camt053Parser(content)
    signs = {"CRDT": 1, "DBIT": -1}
    amounts = [signs[each["CreditDebitIndicator"]] * cents(each["Amount"]) for each in parser.get_transactions()]
    own = list(read_camt(content))
    assert amounts == [amount for each in own for amount in each.amounts]
    for statement, each in zip(parser.get_statement_info(), own, strict=True):
        closing = statement.get("ClosingBalance")
        yield Read(cents(statement["OpeningBalance"]), cents(closing) if closing else each.closing, each.amounts)


def read_bai2(content):
    for group in bai2.parse_from_string(content.decode("ascii")).children:
        for account in group.children:
            totals = {each.type_code.code: each.amount for each in account.header.summary_items}
            is_credit = [each.type_code.transaction == TypeCodeTransaction.credit for each in account.children]
            amounts = [
                each.amount if credit else -each.amount
                for each, credit in zip(account.children, is_credit, strict=True)
            ]
            assert totals["100"] == sum(each for each in amounts if each > 0)
            assert totals["400"] == -sum(each for each in amounts if each < 0)
            yield Read(totals["010"], totals["015"], amounts)


def read_mt940(content):
    for message in content.decode("ascii").split("\r\n-\r\n")[:-1]:
        lines = message.split("\r\n")
        assert not [line for line in lines if len(line) > 75 or (line.startswith(":") and line[:3] not in TAGS)]
        read = mt940.parse(message)
        amounts = [cents(each.data["amount"].amount) for each in read]
        opening, closing = (cents(read.data[f"final_{name}_balance"].amount.amount) for name in ("opening", "closing"))
        yield Read(opening, closing, amounts)


TAGS = {":20", ":25", ":28", ":60", ":61", ":62", ":86"}


def read_ofx(content):
    tree = OFXTree()
    tree.parse(BytesIO(content))
    for statement in tree.convert().statements:
        entries = [each.stmttrn if isinstance(each, INVBANKTRAN) else each for each in statement.transactions]
        own = statement.invbal if isinstance(statement, INVSTMTRS) else statement
        opening, closing = (cents(each.value) for each in own.ballist)
        if own is statement:
            assert cents(statement.ledgerbal.balamt) == closing
        else:
            held = sum(cents(each.mktval) for each in statement.invposlist or ())
            assert cents(own.availcash) + held == closing
        yield Read(opening, closing, [cents(each.trnamt) for each in entries])


def read_xlsx(content):
    book = openpyxl.load_workbook(BytesIO(content), rich_text=False)
    assert not [cell for sheet in book for row in sheet.iter_rows() for cell in row if cell.data_type == "f"]
    balances = list(book["Balances"].iter_rows(min_row=2, values_only=True))
    rows = [row for sheet in book.worksheets[1:] for row in sheet.iter_rows(min_row=2, values_only=True)]
    for row in balances:
        opening, credited, debited, closing = map(cents, row[8:12])
        own = [cents(each[6]) for each in rows if each[:2] == (row[0], row[4])]
        assert credited + debited == sum(own)
        yield Read(opening, closing, own)


READERS = {
    "CAMT053": read_camt053,
    "CAMT052": read_camt,
    "CAMT054": read_camt,
    "BAI2": read_bai2,
    "OFX": read_ofx,
    "MT940": read_mt940,
    "XLSX": read_xlsx,
}


async def write_and_read(name, file):
    """Write a file twice, the same both times, and return its bytes and what its reader finds."""
    contents = []
    for _ in range(2):
        output = BytesIO()
        await WRITERS[name](file, output)
        contents.append(output.getvalue())
    assert contents[0] == contents[1]
    return contents[0], list(READERS[name](contents[0]))


def assert_same(name, file, found, amounts):
    """Check that a reader found what the statements say."""
    for statement, read, own in zip(file.statements, found, amounts, strict=True):
        assert read.amounts == own
        if name != "CAMT054":
            assert (read.opening, read.closing) == (statement.opening.value, statement.closing.value)
