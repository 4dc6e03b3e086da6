"""What a trade confirmation says: 17 CFR 240.10b-10, for a bill traded as agent or as principal."""

from collections.abc import Mapping, Sequence
from datetime import date
from types import MappingProxyType
from typing import Final

from billfold.accounts.trades.store import TradeRow
from billfold.bills.rules import pricing
from billfold.bills.types import Bill
from billfold.http.schemas import format_price
from billfold.platform.dates import ET, et_date
from billfold.platform.money import format_usd
from billfold.reports.confirmations.store import TradedLot
from billfold.reports.confirmations.types import Capacity
from billfold.reports.entries.store import AccountRow
from billfold.reports.printing.printing import masked, paragraphs, printed, printed_day
from billfold.reports.printing.types import PrintedBank, PrintedColumn, PrintedDocument, PrintedTable

_UNIT_CENTS: Final = 10_000
_TITLES: Final = {"BUY": "You bought", "SELL": "You sold"}
_FIELDS: Final = (PrintedColumn("Term"), PrintedColumn("Of this trade", "right", grows=True))
_CAPACITY: Final[Mapping[Capacity, str]] = MappingProxyType(
    {
        Capacity.AGENT: """
Capacity: the bank acted as your agent. The name of the other party to the trade, and whether it acted for others,
are furnished on request. Commission, mark-up and mark-down: none. The bank received no other remuneration for this
trade, and no payment for order flow.
""",
        # FINRA Rule 2232 wants mark-ups of corporate, agency and municipal debt only.
        Capacity.PRINCIPAL: """
Capacity: the bank acted as principal, for its own account. Outside the hours of the bond market it trades with you
itself, at the last price that was struck within them, and at par from the day of maturity. Commission, mark-up and
mark-down: none. The bank received no other remuneration for this trade, and no payment for order flow. A gain or a
loss on its own position is the bank's.
""",
    }
)
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
    """Return the number under which a confirmation is filed."""
    return trade.trade_id.hex[:16].upper()


def compose_confirmation(
    trade: TradeRow,
    bill: Bill,
    account: AccountRow,
    *,
    lots: Sequence[TradedLot],
    priced_from: date,
    settles_on: date,
    capacity: Capacity,
    bank: PrintedBank,
    recipient: Sequence[str],
) -> PrintedDocument:
    """Return the confirmation of a purchase or a sale, whose price counts its days from `priced_from`.

    It settles on `settles_on`, which is later than agreed if that day has been declared closed since.
    """
    traded_at = trade.traded_at.astimezone(ET)
    made_on = et_date(trade.traded_at)
    number = confirmation_number(trade)
    return PrintedDocument(
        title="Trade confirmation",
        subtitle=f"{_TITLES[trade.activity]} US Treasury bills",
        reference=number,
        made_on=made_on,
        bank=bank,
        recipient=recipient,
        details=(
            ("Confirmation number", number),
            ("Pocket", printed(account.name)),
            ("Account", masked(account.account_number or trade.pocket_id.hex.upper())),
            ("Trade date", printed_day(made_on)),
            ("Time of the trade", f"{traded_at:%H:%M:%S} Eastern"),
            ("Settlement date", _settlement(trade, settles_on)),
            ("Capacity of the bank", capacity.capitalize()),
        ),
        summary=_amounts(trade),
        tables=(_terms(trade, bill, priced_from), _lots(trade, lots)),
        notes=paragraphs(_CAPACITY[capacity] + _NOTES),
    )


def _settlement(trade: TradeRow, settles_on: date) -> str:
    if settles_on == trade.settles_on:
        return printed_day(settles_on)
    return f"{printed_day(settles_on)}; {printed_day(trade.settles_on)}, which was agreed on, was declared closed"


def _amounts(trade: TradeRow) -> Sequence[tuple[str, str]]:
    return (
        (f"{_TITLES[trade.activity]}, par amount", format_usd(trade.units * _UNIT_CENTS)),
        ("Price per $100", format_price(trade.price_micros)),
        ("Principal", format_usd(trade.notional)),
        ("Commission", format_usd(0)),
        (
            "Net amount that you pay" if trade.activity == "BUY" else "Net amount that you receive",
            format_usd(trade.notional),
        ),
    )


def _terms(trade: TradeRow, bill: Bill, priced_from: date) -> PrintedTable:
    days = (bill.maturity - priced_from).days
    rate = f"{pricing.rate_from_price(trade.price_micros, days) / 1000:.3f} %" if days > 0 else "none left to maturity"
    investment = pricing.investment_rate(trade.price_micros, priced_from, bill.maturity)
    return PrintedTable(
        heading="The security and its terms",
        columns=_FIELDS,
        rows=(
            ("Security", "United States Treasury Bill" + (" (simulated)" if bill.simulated else "")),
            ("CUSIP", bill.cusip),
            ("ISIN", bill.isin),
            ("Original issue date and term", f"{printed_day(bill.first_issue)}, {bill.original_term}"),
            ("Maturity date", printed_day(bill.maturity)),
            ("Quantity", f"{trade.units:,} of $100.00 face"),
            ("Discount rate", rate),
            ("Yield (investment rate)", f"{investment:.3f} %"),
            ("Action", "BUY" if trade.activity == "BUY" else "SELL"),
        ),
    )


def _lots(trade: TradeRow, lots: Sequence[TradedLot]) -> PrintedTable:
    columns = (PrintedColumn("Tax lot"), PrintedColumn("Acquired", grows=True), PrintedColumn("Par", "right"))
    return PrintedTable(
        heading="Tax lots",
        columns=columns,
        rows=[
            (
                f"{trade.cusip}-{each.acquired_on:%Y%m%d}",
                printed_day(each.acquired_on),
                format_usd(each.units * _UNIT_CENTS),
            )
            for each in lots
        ],
    )
