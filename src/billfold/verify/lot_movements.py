"""Bills as the legs of one journal move them, compared with its trades."""

from collections.abc import Iterable
from typing import Any, NamedTuple
from uuid import UUID

from asyncpg import Record

from billfold.platform.money import cents_for
from billfold.verify.accounts import ReplayedAccount

INTERNAL_TRANSFER, EXTERNAL_TRANSFER = "SAME_ENTITY_SECURITY_TRANSFER", "EXTERNAL_SECURITY_TRANSFER"
SECURITY_TRANSFERS = frozenset({INTERNAL_TRANSFER, EXTERNAL_TRANSFER})
"""Bills that moved and were not paid for."""


class TradeKey(NamedTuple):
    """Bills of one trade: which pocket, which bill, which kind of trade, in or out."""

    pocket_id: UUID | None
    cusip: str
    activity: str
    incoming: bool


class LotMovement:
    """What the legs of one journal did to one such trade."""

    __slots__ = ("account", "cents", "earnings", "tax", "units")

    def __init__(self, account: int) -> None:
        self.account = account
        self.units = self.tax = self.earnings = self.cents = 0


def available_lots(trades: Iterable[Record]) -> dict[TradeKey, list[int]]:
    """What bills enter a pocket at: [units, cents, tax basis], used up leg by leg."""
    available: dict[TradeKey, list[int]] = {}
    for row in trades:
        if row["incoming"] or row["activity"] == "BUY":
            remaining = available.setdefault(trade_key(row), [0, 0, 0])
            remaining[0] += row["units"]
            remaining[1] += row["notional"]
            remaining[2] += row["tax_basis"]
    return available


def trade_key(row: Record) -> TradeKey:
    """The bills of a trade."""
    return TradeKey(row["pocket_id"], row["cusip"], row["activity"], incoming=row["incoming"])


def outgoing_key(lot: ReplayedAccount, other_account: ReplayedAccount) -> TradeKey:
    """The trade of bills that leave a lot for this account."""
    activity = _ACTIVITY_OUT.get(other_account.kind, "SELL")
    return TradeKey(lot.pocket_id, lot.asset, activity, incoming=False)


def incoming_key(other_account: ReplayedAccount, lot: ReplayedAccount) -> TradeKey:
    """The trade of bills that enter a lot from this account."""
    return TradeKey(lot.pocket_id, lot.asset, _ACTIVITY_IN.get(other_account.kind, "BUY"), incoming=True)


_ACTIVITY_OUT = {"treasury": "MATURITY", "lot": INTERNAL_TRANSFER, "custodian": EXTERNAL_TRANSFER}
_ACTIVITY_IN = {"lot": INTERNAL_TRANSFER, "custodian": EXTERNAL_TRANSFER}


def add_movement(
    moved: dict[TradeKey, LotMovement], bills: TradeKey, account: int, units: int, tax: int, earnings: int
) -> None:
    """Count bills and their bases with those of the same trade."""
    total = moved.get(bills)
    if total is None:
        total = moved[bills] = LotMovement(account)
    total.units += units
    total.tax += tax
    total.earnings += earnings


def add_cash(
    leg: Record, debit: ReplayedAccount, credit: ReplayedAccount, money: dict[tuple[UUID | None, str], int]
) -> None:
    """Cash that was paid for bills or came from them."""
    if debit.kind == "cash" and credit.kind == "street":
        money[debit.pocket_id, "BUY"] += leg["amount"]
    elif credit.kind == "cash" and debit.kind in {"street", "treasury"}:
        side = "SELL" if debit.kind == "street" else "MATURITY"
        money[credit.pocket_id, side] += leg["amount"]


def trade_difference(row: Record, legs: LotMovement) -> str | None:
    """Where a trade and its legs disagree."""
    recorded: tuple[Any, ...] = (row["units"], row["tax_basis"], row["earnings_basis"])
    if recorded != (legs.units, legs.tax, legs.earnings):
        return f"units and bases are {recorded}, the legs say {(legs.units, legs.tax, legs.earnings)}"
    if row["notional"] != cents_for(row["units"], row["price_micros"]):
        return "its money is not units times price"
    return None
