"""Bills as the legs of one journal move them, beside the trades that tell of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

from billfold.ledger.checks.accounts import Folded
from billfold.platform.money import cents_for

if TYPE_CHECKING:
    from asyncpg import Record

WITHIN, ELSEWHERE = "SAME_ENTITY_SECURITY_TRANSFER", "EXTERNAL_SECURITY_TRANSFER"
IN_KIND = frozenset({WITHIN, ELSEWHERE})
"""Bills that moved and were not paid for."""


class Bills(NamedTuple):
    """Bills of one trade: which pocket, which bill, which kind of trade, in or out."""

    pocket_id: UUID | None
    cusip: str
    activity: str
    incoming: bool


class MovedBills:
    """What the legs of one journal did to one such trade."""

    __slots__ = ("account", "cents", "earnings", "tax", "units")

    def __init__(self, account: int) -> None:
        self.account = account
        self.units = self.tax = self.earnings = self.cents = 0


def offered_by(trades: Iterable[Record]) -> dict[Bills, list[int]]:
    """What bills enter a pocket at: [units, cents, tax basis], used up leg by leg."""
    offered: dict[Bills, list[int]] = {}
    for row in trades:
        if row["incoming"] or row["activity"] == "BUY":
            left = offered.setdefault(bills_of(row), [0, 0, 0])
            left[0] += row["units"]
            left[1] += row["notional"]
            left[2] += row["tax_basis"]
    return offered


def bills_of(row: Record) -> Bills:
    """The bills a trade tells of."""
    return Bills(row["pocket_id"], row["cusip"], row["activity"], row["incoming"])


def out_of(lot: Folded, there: Folded) -> Bills:
    """Which trade tells of bills that leave a lot for there."""
    activity = _OUT_OF.get(there.kind, "SELL")
    return Bills(lot.pocket_id, lot.asset, activity, incoming=False)


def into_of(there: Folded, lot: Folded) -> Bills:
    """Which trade tells of bills that enter a lot from there."""
    return Bills(lot.pocket_id, lot.asset, _INTO.get(there.kind, "BUY"), incoming=True)


_OUT_OF = {"treasury": "MATURITY", "lot": WITHIN, "custodian": ELSEWHERE}
_INTO = {"lot": WITHIN, "custodian": ELSEWHERE}


def add(
    moved: dict[Bills, MovedBills], bills: Bills, account: int, units: int, tax: int, earnings: int
) -> None:
    """Count bills and their bases with those of the same trade."""
    sums = moved.get(bills)
    if sums is None:
        sums = moved[bills] = MovedBills(account)
    sums.units += units
    sums.tax += tax
    sums.earnings += earnings


def count_money(
    leg: Record, debit: Folded, credit: Folded, money: dict[tuple[UUID | None, str], int]
) -> None:
    """Cash that was paid for bills or came from them."""
    if debit.kind == "cash" and credit.kind == "street":
        money[debit.pocket_id, "BUY"] += leg["amount"]
    elif credit.kind == "cash" and debit.kind in {"street", "treasury"}:
        side = "SELL" if debit.kind == "street" else "MATURITY"
        money[credit.pocket_id, side] += leg["amount"]


def difference(row: Record, legs: MovedBills) -> str | None:
    """Where a trade and its legs disagree."""
    says: tuple[Any, ...] = (row["units"], row["tax_basis"], row["earnings_basis"])
    if says != (legs.units, legs.tax, legs.earnings):
        return f"units and bases are {says}, the legs say {(legs.units, legs.tax, legs.earnings)}"
    if row["notional"] != cents_for(row["units"], row["price_micros"]):
        return "its money is not units times price"
    return None
