"""The books of a Pocket are read by beancount, whatever payers wrote, and by simple readers of the other formats."""

import csv
import re
from datetime import date
from decimal import Decimal
from io import BytesIO, StringIO

from beancount import loader
from beancount.core.data import Transaction
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reports.formats.test_formats import TEXTS

from billfold.reports.formats.files import plain
from billfold.reports.requests import bookkeeping
from billfold.reports.requests.bookkeeping import UNASSIGNED, Booking, PocketBooks

NAME = "Pocket-cmd-0123ABCD"
CASH, BILLS = f"Assets:{NAME}:Cash", f"Assets:{NAME}:Bills"
HOSTILE = [
    '2025-06-30 * "x" "y"',
    "  ; note",
    '"\\',
    "= 1",
    "(code) ! |",
    "(2 of 3) [2019-01-01]",
    ":tag:",
    "Value:: 1/0",
]


def books_of(texts):
    """Return books in which 10 dollars arrive with each text, half of which buy bills."""
    bookings = []
    for each in map(plain, texts):
        paid = ((CASH, 10_00), (UNASSIGNED, -10_00))
        bookings.append(Booking(date(2025, 6, 3), each, each, "ab12", paid))
        bookings.append(Booking(date(2025, 6, 3), "US Treasury", "Buy", "", ((BILLS, 5_00), (CASH, -5_00))))

    async def listed():
        for each in bookings:
            yield each

    opening, moved = {CASH: 1_00, BILLS: 99_01}, 5_00 * len(texts)
    closing = {name: cents + moved for name, cents in opening.items()}
    return PocketBooks(NAME, date(2025, 6, 1), date(2025, 6, 30), opening, closing, listed)


async def written(write, books, heading=b""):
    output = BytesIO(heading)
    output.seek(len(heading))
    await write(books, output)
    return output.getvalue().decode()


def read_beancount(text):
    """Return balances by account in cents, and the transactions, as beancount loads them without an error."""
    entries, errors, _ = loader.load_string(text)
    assert errors == []
    transactions = [each for each in entries if isinstance(each, Transaction)]
    return sums(
        (leg.account, leg.units.number if leg.units else 0) for each in transactions for leg in each.postings
    ), transactions


def read_ledger(text):
    """Return the same of a journal of ledger; each transaction must be zero."""
    balances: dict[str, int] = {}
    for block in text.strip().split("\n\n"):
        legs = sums(
            (name, Decimal(amount)) for name, amount in re.findall(r"^ {4}(\S+)  (-?[\d.]+) USD$", block, re.MULTILINE)
        )
        assert re.match(r"\d{4}-\d\d-\d\d \* \S", block)
        assert not re.search(r"^ +;.*[\[\]:]", block, re.MULTILINE)
        assert sum(legs.values()) == 0
        balances = {name: balances.get(name, 0) + legs.get(name, 0) for name in {**balances, **legs}}
        for name, asserted in re.findall(r"^ {4}(\S+)  0 USD = (-?[\d.]+) USD$", block, re.MULTILINE):
            assert balances.get(name, 0) == Decimal(asserted) * 100
    return balances


def sums(amounts):
    found: dict[str, int] = {}
    for name, amount in amounts:
        found[name] = found.get(name, 0) + int((amount or 0) * 100)
    return found


@given(texts=st.lists(st.sampled_from(HOSTILE) | TEXTS, max_size=2))
@settings(max_examples=60, deadline=None)
async def test_books_keep_their_figures_whatever_payers_write(texts):
    books = books_of(texts)
    text = await written(bookkeeping.write_beancount, books, bookkeeping.BEANCOUNT_HEADING)
    balances, transactions = read_beancount(text)
    assert {name: balances[name] for name in books.closing} == books.closing
    assert [each.payee or "" for each in transactions if each.meta.get("reference")] == [plain(each) for each in texts]
    assert read_ledger(await written(bookkeeping.write_ledger, books)) == balances
    for write, columns in ((bookkeeping.write_quickbooks, 3), (bookkeeping.write_xero, 5)):
        rows = list(csv.reader(StringIO(await written(write, books))))
        assert {len(row) for row in rows} <= {columns}
        amounts = [Decimal(row[2 if columns == 3 else 1]) for row in rows]
        assert sum(amounts) * 100 == books.closing[CASH] - books.opening[CASH]
        assert not [cell for row in rows for cell in row if re.match(r"[=@\t]|[+-](?![\d.]+$)", cell)]
