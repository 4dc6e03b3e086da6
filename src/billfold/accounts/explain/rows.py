"""Lots, trades and transactions as the rows that explanations name."""

from collections.abc import Sequence

from billfold.accounts.explain.schemas import Row, RowKind
from billfold.accounts.explain.store import ROWS_MAX, AccountRow, MovedMoney, MovedTrade
from billfold.http.schemas import format_price, usd

_VERBS = {"BUY": "bought", "SELL": "sold", "MATURITY": "matured"}


def lot_row(lot: AccountRow, units: int | None = None) -> Row:
    """Return the row of a lot; `units` are those of it that count here, by default all."""
    assert lot.acquired_on is not None
    return Row(
        kind=RowKind.LOT,
        label=f"Lot {lot.account_no} of {lot.asset}, acquired on {lot.acquired_on}",
        id=str(lot.account_no),
        cusip=lot.asset,
        units=lot.credits - lot.debits if units is None else units,
        amount=usd(lot.earnings_basis),
        on=lot.acquired_on,
    )


def trade_rows(trades: Sequence[MovedTrade]) -> list[Row]:
    """Return the rows of trades, as many as are shown."""
    return [
        Row(
            kind=RowKind.TRADE,
            label=f"{each.units} bills of {each.cusip} {_verb(each)}",
            id=str(each.trade_id),
            entry_no=each.entry_no,
            cusip=each.cusip,
            units=each.units,
            amount=usd(each.notional),
            price=format_price(each.price_micros),
            at=each.traded_at,
        )
        for each in trades[:ROWS_MAX]
    ]


def transaction_rows(transactions: Sequence[MovedMoney]) -> list[Row]:
    """Return the rows of transactions, as many as are shown; a debit is negative."""
    return [
        Row(
            kind=RowKind.TRANSACTION,
            label=each.title,
            id=str(each.activity_id),
            entry_no=each.entry_no,
            posting_no=each.posting_no,
            amount=usd(each.amount if each.direction == "CREDIT" else -each.amount),
            at=each.booked_at,
        )
        for each in transactions[:ROWS_MAX]
    ]


def _verb(trade: MovedTrade) -> str:
    return _VERBS.get(trade.activity, "received" if trade.incoming else "transferred")
