"""Units to buy or sell for an amount, and the cost of parts of FIFO lots.

Plain integers without a loop: this runs in every transfer.
"""

from collections.abc import Callable, Iterable, Sequence
from datetime import date
from typing import Generic, NamedTuple, Protocol, TypeVar

from billfold.bills.rules.pricing import NO_BID
from billfold.platform.money import cents_for, round_half_up

_MICROS_PER_CENT = 10_000
_HALF_A_CENT = _MICROS_PER_CENT // 2


class Lot(Protocol):
    """A lot as a sale needs it; units are those still held."""

    @property
    def cusip(self) -> str:
        """The CUSIP of the lot's bill."""

    @property
    def maturity(self) -> date:
        """Maturity date of the bill; lots are sold in this order."""

    @property
    def acquired_on(self) -> date:
        """Acquisition date; within a CUSIP the oldest lot is sold first."""

    @property
    def units(self) -> int:
        """Bills of $100 face still held."""


LotType = TypeVar("LotType", bound=Lot)


class Sale(NamedTuple, Generic[LotType]):
    """One trade of a planned sale: units of one CUSIP, its money, and the lots it takes from."""

    cusip: str
    units: int
    price_micros: int
    proceeds_cents: int
    taken: list[tuple[LotType, int]]


def affordable_units(cash_cents: int, ask_micros: int) -> int:
    """Return the most units whose cost, rounded half up to the cent, is within the cash."""
    if cash_cents <= 0:
        return 0
    # (u * p + 5000) // 10000 <= c holds exactly while u * p <= 10000 * c + 4999.
    return (cash_cents * _MICROS_PER_CENT + _HALF_A_CENT - 1) // ask_micros


def units_to_sell(need_cents: int, bid_micros: int) -> int:
    """Return the fewest units whose proceeds, rounded half up to the cent, cover the need."""
    if need_cents <= 0:
        return 0
    # (u * p + 5000) // 10000 >= n holds exactly from u * p = 10000 * n - 5000 on.
    return -((_HALF_A_CENT - need_cents * _MICROS_PER_CENT) // bid_micros)


def allocate_basis(basis_cents: int, sold_units: int, held_units: int) -> int:
    """Return the part of a basis that leaves with `sold_units` of `held_units`, half up.

    All of it when everything is sold, so that successive parts add up to the original basis.
    Raises ValueError unless 0 <= sold <= held and something is held.
    """
    if not 0 <= sold_units <= held_units or held_units == 0:
        raise ValueError(f"{sold_units} of {held_units} units cannot be sold")
    if sold_units == held_units:
        return basis_cents
    return round_half_up(basis_cents * sold_units, held_units)


def plan_sale(lots: Sequence[LotType], need_cents: int, price_of: Callable[[str], int]) -> list[Sale[LotType]] | None:
    """Return the trades that raise at least `need_cents`, or None when all lots together cannot.

    `lots` are sorted by maturity, shortest first, and within a CUSIP by age, oldest first; every lot
    holds at least one unit. Each CUSIP is one trade with one rounding, only the last is partial,
    and it sells the fewest units that suffice. A lot without a bid is not sold.
    """
    if need_cents <= 0:
        return []
    price, matured = NO_BID, 0
    while matured < len(lots) and (price := price_of(lots[matured].cusip)) == NO_BID:
        matured += 1
    if matured == len(lots):
        return None
    first = lots[matured]
    units = units_to_sell(need_cents, price)
    if units <= first.units:
        return [Sale(first.cusip, units, price, proceeds_cents=cents_for(units, price), taken=[(first, units)])]
    return _plan_across(lots[matured:], need_cents, price_of)


def _plan_across(
    lots: Iterable[LotType], need_cents: int, price_of: Callable[[str], int]
) -> list[Sale[LotType]] | None:
    by_cusip: dict[str, list[LotType]] = {}
    for lot in lots:
        by_cusip.setdefault(lot.cusip, []).append(lot)
    sales = []
    missing_cents = need_cents
    for cusip, held in by_cusip.items():
        price = price_of(cusip)
        units = min(units_to_sell(missing_cents, price), sum(lot.units for lot in held))
        proceeds = cents_for(units, price)
        sales.append(Sale(cusip, units, price, proceeds_cents=proceeds, taken=_pick_lots(held, units)))
        missing_cents -= proceeds
        if missing_cents <= 0:
            return sales
    return None


def _pick_lots(held: Iterable[LotType], units: int) -> list[tuple[LotType, int]]:
    """Return the lots that supply the units, oldest first; together they hold at least as many."""
    taken = []
    lots = iter(held)
    while units:
        lot = next(lots)
        part = min(lot.units, units)
        taken.append((lot, part))
        units -= part
    return taken
