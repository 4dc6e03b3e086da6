"""The books of Pockets for accounting programs: cash, bills at cost, interest and fees, to the cent.

A booking has two or three legs, whose sum is zero. Payments stand against one account, from which the company assigns
them; transfers between Pockets of one file cancel out there. Bills are an amount at cost: what is sold or matures
leaves at its tax basis, and the rest of its proceeds is interest. A file is complete: it begins with opening balances.
"""

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import date, timedelta
from functools import partial
from typing import IO, NamedTuple
from uuid import UUID

from billfold.accounts.trades.store import TradeRow
from billfold.ledger.bank import Bank
from billfold.platform.dates import et_date
from billfold.platform.errors import InvariantError
from billfold.platform.text import lines_of
from billfold.reports.entries.reader import StatementRange, list_entries, read_statement
from billfold.reports.entries.types import AccountEntry, AccountStatement, AccountType, Balance, EntryKind
from billfold.reports.formats.files import ascii_text, plain
from billfold.reports.requests.types import Renderer, ReportSource, dollars
from billfold.reports.statements.store import costs, list_trades

OPENING, UNASSIGNED, FEES = "Equity:Opening-Balances", "Equity:Unassigned", "Expenses:Bank-Fees"
_ONE_DAY = timedelta(days=1)
_NAME_MAX = 40
_LEDGER_MARKS = str.maketrans({";": ",", "|": "/", ":": "."} | dict.fromkeys("([", "{") | dict.fromkeys(")]", "}"))
"""In a comment of ledger `[2026-01-31]` is another date, and `:tag:` or `name: value` are the transaction's data."""


class Booking(NamedTuple):
    """One booking: cents by account, positive for a debit."""

    on: date
    payee: str
    text: str
    reference: str
    legs: tuple[tuple[str, int], ...]


class PocketBooks(NamedTuple):
    """The books of a Pocket over some days: cents by account at their beginning and end, and what comes between."""

    name: str
    """Valid as a part of an account's name, unique within the file."""
    first_day: date
    last_day: date
    opening: dict[str, int]
    closing: dict[str, int]
    bookings: Callable[[], AsyncIterator[Booking]]

    @property
    def cash(self) -> str:
        """The account of the Pocket's cash."""
        return next(iter(self.opening))


Writer = Callable[[PocketBooks, IO[bytes]], Awaitable[None]]


def in_books(write: Writer, heading: bytes) -> Renderer:
    """Return a renderer that writes the books of each Pocket of a report."""

    async def render(source: ReportSource, output: IO[bytes]) -> None:
        output.write(heading)
        for number, pocket_id in enumerate(source.pocket_ids, 1):
            await write(await _read_books(source, pocket_id), output)
            source.report_progress(100 * number // len(source.pocket_ids))

    return render


async def _read_books(source: ReportSource, pocket_id: UUID) -> PocketBooks:
    bank, request = source.bank, source.request
    first_day, last_day = request.parameters.date_from, request.parameters.date_to
    assert first_day is not None
    assert last_day is not None
    brokerage = StatementRange(
        request.customer_id, pocket_id, AccountType.BROKERAGE, first_day, last_day, request.seen_at, source.position
    )
    held = await read_statement(bank, brokerage)
    paid = await read_statement(bank, brokerage._replace(type=AccountType.BANK))
    words = re.sub(r"[^A-Za-z0-9]+", "-", ascii_text(held.account.name)).strip("-")[:_NAME_MAX].strip("-")
    name = "-".join(filter(None, ("Pocket", words, pocket_id.hex[-8:].upper())))
    accounts = f"Assets:{name}:Cash", f"Assets:{name}:Bills"
    opening = held.opening.cash, await _cost(bank, held, held.opening, held.entries_after)
    closing = held.closing.cash, await _cost(bank, held, held.closing, held.position.entry_no)
    return PocketBooks(
        name,
        first_day,
        last_day,
        dict(zip(accounts, opening, strict=True)),
        dict(zip(accounts, closing, strict=True)),
        partial(_checked, bank, paid, name, opening=opening, closing=closing),
    )


async def _cost(bank: Bank, held: AccountStatement, balance: Balance, through: int) -> int:
    """Return the tax basis of the bills of a balance in cents."""
    account, cusips = held.account, [each.security.cusip for each in balance.holdings]
    return sum((await costs(bank.pool, account.customer_id, account.pocket_id, through, cusips)).values())


async def _checked(
    bank: Bank, paid: AccountStatement, name: str, *, opening: tuple[int, int], closing: tuple[int, int]
) -> AsyncIterator[Booking]:
    """Yield payments, then trades. Raises InvariantError if they do not lead from the opening to the closing."""
    cash, bills = opening
    async for each in _bookings(bank, paid, name):
        cash += sum(cents for account, cents in each.legs if account.endswith(":Cash"))
        bills += sum(cents for account, cents in each.legs if account.endswith(":Bills"))
        yield each
    if (cash, bills) != closing:
        raise InvariantError("Books differ from the statement.", pocket_id=paid.account.pocket_id)


async def _bookings(bank: Bank, paid: AccountStatement, name: str) -> AsyncIterator[Booking]:
    async for page in list_entries(bank, paid):
        for entry in page:
            if entry.kind != EntryKind.SWEEP:
                yield _payment(entry, name)
    owner = paid.account.customer_id, paid.account.pocket_id
    async for trades in list_trades(bank.pool, owner, paid.entries_after, paid.position.entry_no):
        for row in trades:
            yield _trade(row, name)


def _payment(entry: AccountEntry, name: str) -> Booking:
    against = FEES if entry.kind == EntryKind.FEE else UNASSIGNED
    legs = ((f"Assets:{name}:Cash", entry.amount), (against, -entry.amount))
    payee, text = plain(entry.counterparty or entry.title), plain(" ".join([entry.title, *entry.purpose]))
    return Booking(entry.booked_on, payee, text, entry.reference, legs)


def _trade(row: TradeRow, name: str) -> Booking:
    sign = 1 if row.incoming else -1
    is_paid = row.activity in {"BUY", "SELL", "MATURITY"}
    paid = -sign * row.notional if is_paid else 0
    basis = sign * row.tax_basis
    # What is moved in kind keeps its basis: nothing is earned.
    rest = (f"Income:Interest:{name}" if is_paid else UNASSIGNED, -paid - basis)
    legs = ((f"Assets:{name}:Bills", basis), (f"Assets:{name}:Cash", paid), rest)
    kind = row.activity.replace("_", " ").capitalize()
    text = f"{kind} {row.units} units of {row.cusip}"
    return Booking(et_date(row.traded_at), "US Treasury", text, row.trade_id.hex, tuple(leg for leg in legs if leg[1]))


# -- plain-text accounting -------------------------------------------------------------

BEANCOUNT_HEADING = f"""\
option "operating_currency" "USD"
1970-01-01 open {OPENING} USD
1970-01-01 open {UNASSIGNED} USD
1970-01-01 open {FEES} USD
""".encode()


async def write_beancount(books: PocketBooks, output: IO[bytes]) -> None:
    """Write the books for beancount: each balance at the end is asserted."""
    accounts = [*books.opening, f"Income:Interest:{books.name}"]
    output.write("".join(f"\n1970-01-01 open {each} USD" for each in accounts).encode() + b"\n")
    output.write(_beancount(_opening(books)))
    async for each in books.bookings():
        output.write(_beancount(each))
    after = books.last_day + _ONE_DAY
    asserted = [f"{after} balance {account} {dollars(cents):f} USD\n" for account, cents in books.closing.items()]
    output.write(("\n" + "".join(asserted)).encode())


def _opening(books: PocketBooks) -> Booking:
    legs = [*books.opening.items(), (OPENING, -sum(books.opening.values()))]
    return Booking(books.first_day, "Opening balances", books.name, "", tuple(leg for leg in legs if leg[1]))


def _beancount(booking: Booking) -> bytes:
    if not booking.legs:
        return b""
    payee, text = (each.replace("\\", "\\\\").replace('"', '\\"') for each in (booking.payee, booking.text))
    reference = f'  reference: "{booking.reference}"\n' if booking.reference else ""
    return f'\n{booking.on} * "{payee}" "{text}"\n{reference}{_legs(booking)}'.encode()


async def write_ledger(books: PocketBooks, output: IO[bytes]) -> None:
    """Write the books for ledger and hledger: each balance at the end is asserted."""
    output.write(_ledger(_opening(books)))
    async for each in books.bookings():
        output.write(_ledger(each))
    asserted = "".join(f"    {account}  0 USD = {dollars(cents):f} USD\n" for account, cents in books.closing.items())
    output.write(f"\n{books.last_day} * Closing balances\n{asserted}".encode())


def _ledger(booking: Booking) -> bytes:
    if not booking.legs:
        return b""
    payee, text = (each.translate(_LEDGER_MARKS) for each in (booking.payee, booking.text))
    code = f"({booking.reference}) " if booking.reference else ""
    return f"\n{booking.on} * {code}{payee}\n    ; {text}\n{_legs(booking)}".encode()


def _legs(booking: Booking) -> str:
    return "".join(f"    {account}  {dollars(cents):f} USD\n" for account, cents in booking.legs)


# -- bank feeds ------------------------------------------------------------------------

QUICKBOOKS_HEADING = lines_of([("Date", "Description", "Amount")])
XERO_HEADING = lines_of([("*Date", "*Amount", "Payee", "Description", "Reference")])


async def write_quickbooks(books: PocketBooks, output: IO[bytes]) -> None:
    """Write what moved the cash of a Pocket for the bank feed of QuickBooks Online: American dates, three columns."""
    async for each in books.bookings():
        if cents := dict(each.legs).get(books.cash):
            output.write(lines_of([(f"{each.on:%m/%d/%Y}", f"{each.payee}: {each.text}", dollars(cents))]))


async def write_xero(books: PocketBooks, output: IO[bytes]) -> None:
    """Write the same for a statement import of Xero."""
    async for each in books.bookings():
        if cents := dict(each.legs).get(books.cash):
            output.write(lines_of([(each.on, dollars(cents), each.payee, each.text, each.reference)]))
