"""Trade confirmations, which 17 CFR 240.10b-10 requires for each purchase and sale.

A maturity has none. A confirmation is made from the row of the trade when it is first requested, and stored: it stays
the same file from then on.
"""

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from enum import StrEnum
from typing import Final, NamedTuple
from uuid import UUID

from billfold.accounts.trades.schemas import priced_from, settles_on
from billfold.accounts.trades.store import TradeRow, by_id, find_by_id
from billfold.bills.rules import pricing, yields
from billfold.bills.types import Bill
from billfold.http.schemas import format_price
from billfold.ledger.bank import Bank
from billfold.platform.calendars import Calendars
from billfold.platform.database.connection import Db
from billfold.platform.database.rows import Table
from billfold.platform.dates import ET, et_date
from billfold.platform.errors import NotFound
from billfold.platform.ids import command_id
from billfold.platform.money import format_usd
from billfold.reports import downloads, printing
from billfold.reports.entries.store import get_account, position_of


class Capacity(StrEnum):
    """The capacity in which the bank trades."""

    AGENT = "AGENT"
    """For the customer's account, on the market."""
    PRINCIPAL = "PRINCIPAL"
    """For its own account: outside market hours it is the counterparty."""


def capacity_at(traded_at: datetime, calendars: Calendars) -> Capacity:
    """Return the capacity of a trade: when the market is closed, only the bank itself can be the counterparty."""
    return Capacity.AGENT if calendars.is_trading(traded_at) else Capacity.PRINCIPAL


_trades = Table(TradeRow, "trade")
_TRADE = by_id(_trades.columns("t", counterparty_name="NULL"))
_EARLIER = """
SELECT coalesce(sum(units), 0)::bigint FROM trade
 WHERE customer_id = $1 AND pocket_id = $2 AND entry_no = $3 AND trade_no < $4 AND cusip = $5 AND activity = $6
"""
_LOT_POSTINGS = """
SELECT a.acquired_on, p.amount FROM posting p
  JOIN account a ON a.customer_id = p.customer_id AND a.kind = 'lot' AND a.pocket_id = $2
                AND a.account_no = CASE $5 WHEN 'BUY' THEN p.credit ELSE p.debit END
 WHERE p.customer_id = $1 AND p.entry_no = $3 AND p.asset = $4
 ORDER BY p.posting_no
"""


class TradedLot(NamedTuple):
    """Units that a trade added to or removed from a tax lot. A lot is identified by its bill and its day."""

    acquired_on: date
    units: int


async def find_trade(conn: Db, customer_id: UUID, pocket_id: UUID, trade_id: UUID) -> TradeRow | None:
    """Return a purchase or sale of a Pocket."""
    row = await find_by_id(conn, _TRADE, (customer_id, pocket_id, trade_id))
    return None if row is None or row["activity"] not in {"BUY", "SELL"} else _trades.read(row)


async def list_lots(conn: Db, trade: TradeRow) -> list[TradedLot]:
    """Return the tax lots of a purchase or sale, in the order in which they were used."""
    entry = (trade.customer_id, trade.pocket_id, trade.entry_no)
    # One journal entry may sell a bill twice, for a payment and for a fee: the second sale continues after the first.
    skipped = await conn.fetchval(_EARLIER, *entry, trade.trade_no, trade.cusip, trade.activity)
    lots, wanted = list[TradedLot](), trade.units
    for acquired_on, units in await conn.fetch(_LOT_POSTINGS, *entry, trade.cusip, trade.activity):
        left = max(units - skipped, 0)
        skipped -= units - left
        if taken := min(left, wanted):
            lots.append(TradedLot(acquired_on, taken))
            wanted -= taken
    return lots


_UNIT_CENTS: Final = 10_000
_TITLES: Final = {"BUY": "You bought", "SELL": "You sold"}
_FIELDS: Final = printing.columns("Term", "Of this trade+>")
_LOT_COLUMNS: Final = printing.columns("Tax lot", "Acquired+", "Par>")
_CAPACITY: Final[Mapping[Capacity, str]] = {
    Capacity.AGENT: """
Capacity: the bank acted as your agent. The name of the other party to the trade, and whether it acted for others,
are furnished on request. Commission, mark-up and mark-down: none. The bank received no other remuneration for this
trade, and no payment for order flow.
""",
    # FINRA Rule 2232 requires mark-ups only for corporate, agency and municipal debt.
    Capacity.PRINCIPAL: """
Capacity: the bank acted as principal, for its own account. Outside the hours of the bond market it trades with you
itself, at the last price that was struck within them, and at par from the day of maturity. Commission, mark-up and
mark-down: none. The bank received no other remuneration for this trade, and no payment for order flow. A gain or a
loss on its own position is the bank's.
""",
}
_NOTES: Final = """
The order was not solicited: it carries out the standing investment instruction of the Pocket, or raises cash for a
payment that you instructed.

The bill pays no coupon and cannot be called before maturity. The yield is the investment rate (coupon equivalent)
from the settlement that was agreed on to maturity at this price.

The bank is not a member of the Securities Investor Protection Corporation (SIPC). Treasury bills are obligations of
the United States; they are not deposits, are not insured by the FDIC, and may lose value when sold before maturity.

Compare this confirmation with your records and report any difference at once to the address above.
"""


def confirmation_number(trade: TradeRow) -> str:
    """Return the number of a confirmation."""
    return trade.trade_id.hex[:16].upper()


def _settlement(trade: TradeRow, settles_on: date) -> str:
    if settles_on == trade.settles_on:
        return printing.printed_day(settles_on)
    later, agreed = printing.printed_day(settles_on), printing.printed_day(trade.settles_on)
    return f"{later}; {agreed}, which was agreed on, was declared closed"


def _amounts(trade: TradeRow) -> Sequence[tuple[str, str]]:
    return (
        (f"{_TITLES[trade.activity]}, par amount", format_usd(trade.units * _UNIT_CENTS)),
        ("Price per $100", format_price(trade.price_micros)),
        ("Principal", format_usd(trade.notional)),
        ("Commission", format_usd(0)),
        (f"Net amount that you {'pay' if trade.activity == 'BUY' else 'receive'}", format_usd(trade.notional)),
    )


def _terms(trade: TradeRow, bill: Bill, priced_from: date) -> printing.PrintedTable:
    days = (bill.maturity - priced_from).days
    rate = f"{pricing.rate_from_price(trade.price_micros, days) / 1000:.3f} %" if days > 0 else "none left to maturity"
    investment = yields.investment_rate(trade.price_micros, priced_from, bill.maturity)
    return printing.PrintedTable(
        heading="The security and its terms",
        columns=_FIELDS,
        rows=(
            ("Security", "United States Treasury Bill" + (" (simulated)" if bill.simulated else "")),
            ("CUSIP", bill.cusip),
            ("ISIN", bill.isin),
            ("Original issue date and term", f"{printing.printed_day(bill.first_issue)}, {bill.original_term}"),
            ("Maturity date", printing.printed_day(bill.maturity)),
            ("Quantity", f"{trade.units:,} of $100.00 face"),
            ("Discount rate", rate),
            ("Yield (investment rate)", f"{investment:.3f} %"),
            ("Action", trade.activity),
        ),
    )


def _lots(trade: TradeRow, lots: Sequence[TradedLot]) -> printing.PrintedTable:
    bill, day, cents = trade.cusip, printing.printed_day, _UNIT_CENTS
    rows = [(f"{bill}-{on:%Y%m%d}", day(on), format_usd(units * cents)) for on, units in lots]
    return printing.PrintedTable(heading="Tax lots", columns=_LOT_COLUMNS, rows=rows)


PDF: Final = "application/pdf"
# Each capacity has its own file: after a correction of the day's hours, the old file is not served again.
_FILES: Final = {Capacity.AGENT: "confirmation", Capacity.PRINCIPAL: "confirmation as principal"}


async def get_confirmation(bank: Bank, trade: TradeRow, capacity: Capacity) -> downloads.ReportFile:
    """Return the confirmation of a purchase or sale that the bank made in a capacity."""
    file_id = command_id(_FILES[capacity], trade.trade_id)
    try:
        return await downloads.get_file(bank.pool, trade.customer_id, file_id)
    except NotFound:
        pdf = await _print_confirmation(bank, trade, capacity)
    name = f"confirmation-{confirmation_number(trade)}.pdf"
    kept = await downloads.keep_file(
        bank, (trade.customer_id, file_id), pdf, name=name, media_type=PDF, at=trade.traded_at
    )
    async with bank.pool.acquire() as conn, conn.transaction():
        await downloads.add_file(conn, kept)
    return await downloads.get_file(bank.pool, trade.customer_id, file_id)


async def _print_confirmation(bank: Bank, trade: TradeRow, capacity: Capacity) -> bytes:
    customer_id, pocket_id, at = trade.customer_id, trade.pocket_id, trade.traded_at
    account = await get_account(bank.pool, customer_id, pocket_id, at)
    priced = priced_from(trade, bank.calendars)
    number, made_on = confirmation_number(trade), et_date(at)
    document = printing.PrintedDocument(
        title="Trade confirmation",
        subtitle=f"{_TITLES[trade.activity]} US Treasury bills",
        reference=number,
        made_on=made_on,
        bank=printing.bank_of(bank.settings),
        recipient=await printing.recipient_of(bank, customer_id),
        details=(
            ("Confirmation number", number),
            ("Pocket", printing.printed(account.name)),
            ("Account", printing.masked(account.account_number or pocket_id.hex.upper())),
            ("Trade date", printing.printed_day(made_on)),
            ("Time of the trade", f"{at.astimezone(ET):%H:%M:%S} Eastern"),
            ("Settlement date", _settlement(trade, settles_on(trade, bank.calendars))),
            ("Capacity of the bank", capacity.capitalize()),
        ),
        summary=_amounts(trade),
        tables=(_terms(trade, bank.market.bill(trade.cusip), priced), _lots(trade, await list_lots(bank.pool, trade))),
        notes=printing.paragraphs(_CAPACITY[capacity] + _NOTES),
    )
    position = await position_of(bank.pool, customer_id, trade.entry_no)
    return await printing.print_signed(
        bank, document, printing.Subject(customer_id, pocket_id, account.name, at, position)
    )
