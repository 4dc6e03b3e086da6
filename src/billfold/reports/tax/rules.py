"""From movements of lots to the boxes of tax forms, to the cent: pure.

A bill held to maturity pays interest: par less cost. One sold before pays interest up to its straight-line share of the
acquisition discount (IRC 1271(a)(3), 1283); what it brought above that is short-term capital gain.
"""

from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Sequence
from datetime import date, datetime, time, timedelta
from typing import Final
from uuid import UUID

from billfold.bills.rules.lots import allocate_basis
from billfold.platform.dates import et_date, et_instant
from billfold.platform.errors import InvariantError
from billfold.platform.money import round_half_up
from billfold.reports.tax.types import Disposal, Filing, LotMovement, TaxForm, TaxLine, TaxStatus, TaxYear

INTEREST_MINIMUM_CENTS: Final = 10_00
"""Less interest than this of one customer in a year need not be filed (IRC 6049(a))."""
WITHHOLDING_PERCENT: Final = 24
_CLOSED_DAYS_MAX: Final = timedelta(days=15)
_TERM_DAYS_MAX: Final = timedelta(days=52 * 7 + 15)
_MADE_AT: Final = time(6)
_MADE_ON: Final = (1, 15)
"""When the forms of a year are made in the next: before the first due date (31 January)."""
DISPOSING: Final = ("SELL", "MATURITY")


def year_bounds(year: int) -> tuple[datetime, datetime]:
    """Return the instants at which a calendar year begins and ends in New York."""
    return et_instant(date(year, 1, 1), time()), et_instant(date(year + 1, 1, 1), time())


def due_at(year: int) -> datetime:
    """Return from when on the forms of a calendar year are made."""
    return et_instant(date(year + 1, *_MADE_ON), _MADE_AT)


def is_relevant(maturity: date, year: int) -> bool:
    """Tell whether a bill can have been sold or redeemed in a calendar year: one due before it began is gone.

    Its lots were bought at most 52 weeks before its maturity, which is paid a few days later where that is closed.
    """
    return maturity > date(year, 1, 1) - _CLOSED_DAYS_MAX


def first_purchase(year: int) -> datetime:
    """Return from when on lots of bills that are relevant for a calendar year can have been bought."""
    return et_instant(date(year, 1, 1) - _CLOSED_DAYS_MAX - _TERM_DAYS_MAX, time())


def years_due(first: int | None, finished: Container[int], now: datetime) -> list[int]:
    """Return the years since the first whose forms are due and not all made."""
    return [year for year in range(first or now.year, now.year) if year not in finished and due_at(year) <= now]


class _Rest:
    """Units and cents that are not used up yet; the parts that are taken add up to the whole."""

    __slots__ = ("cents", "units")

    def __init__(self, units: int = 0, cents: int = 0) -> None:
        self.units, self.cents = units, cents

    def take(self, units: int) -> int:
        part = allocate_basis(self.cents, units, self.units)
        self.units -= units
        self.cents -= part
        return part


class _TradeRest:
    """A trade whose postings are met one by one: its money and its basis, and the cost of what was met."""

    __slots__ = ("basis", "cost", "money")

    def __init__(self, trade: LotMovement) -> None:
        self.money = _Rest(trade.trade_units, trade.notional)
        self.basis = _Rest(trade.trade_units, trade.tax_basis)
        self.cost = 0


class LotReplay:
    """The lots of a customer, which are empty before the first movement that is played."""

    def __init__(self, maturity_of: Callable[[str], date]) -> None:
        self._maturity_of = maturity_of
        self._lots: defaultdict[int, _Rest] = defaultdict(_Rest)
        self._trades: dict[UUID, _TradeRest] = {}

    def play(self, movement: LotMovement) -> Disposal | None:
        """Return the disposal that a movement is, if it is one; movements come in the order of booking.

        The bills take their share of the lot's remaining cost, as in the ledger, and of the trade's money by units.
        Raises InvariantError where the parts of a trade do not add up to its basis.
        """
        proceeds, cost = self._move(movement)
        if movement.activity not in DISPOSING:
            return None
        return _disposal(movement, proceeds, cost, maturity=self._maturity_of(movement.cusip))

    def _move(self, movement: LotMovement) -> tuple[int, int]:
        trade = self._trade_of(movement)
        if movement.from_lot is not None:
            cost = self._take(movement.from_lot, movement)
        else:
            cost = trade.basis.take(movement.units) if trade else 0
        if movement.into_lot is not None:
            self._lots[movement.into_lot].units += movement.units
            self._lots[movement.into_lot].cents += cost
        return (self._add_to_trade(trade, movement, cost) if trade else 0), cost

    def _trade_of(self, movement: LotMovement) -> _TradeRest | None:
        if movement.trade_id is None:
            return None
        return self._trades.setdefault(movement.trade_id, _TradeRest(movement))

    def _take(self, lot_no: int, movement: LotMovement) -> int:
        lot = self._lots[lot_no]
        if movement.units > lot.units:
            raise InvariantError("More bills leave a lot than it holds.", entry_no=movement.entry_no)
        return lot.take(movement.units)

    def _add_to_trade(self, trade: _TradeRest, movement: LotMovement, cost: int) -> int:
        trade.cost += cost
        money = trade.money.take(movement.units)
        if trade.money.units == 0:
            self._trades.pop(movement.trade_id)  # type: ignore[arg-type]  # it has a trade
            if trade.cost != movement.tax_basis:
                raise InvariantError("The lots of a trade do not add up to its basis.", trade_id=str(movement.trade_id))
        return money


def _disposal(movement: LotMovement, proceeds: int, cost: int, maturity: date) -> Disposal:
    assert movement.from_pocket is not None
    assert movement.acquired_on is not None
    assert movement.trade_id is not None
    assert movement.traded_at is not None
    return Disposal(
        pocket_id=movement.from_pocket,
        trade_id=movement.trade_id,
        cusip=movement.cusip,
        acquired_on=movement.acquired_on,
        disposed_on=et_date(movement.traded_at),
        maturity=maturity,
        redeemed=movement.activity == "MATURITY",
        units=movement.units,
        proceeds=proceeds,
        cost=cost,
    )


def tax_line(disposal: Disposal, status: TaxStatus | None = None) -> TaxLine:
    """Return how much of a gain is interest: all of it at maturity, before that at most a share of the discount.

    Of a sale 24 % of the gross proceeds are withheld while the customer is subject to it (26 CFR 31.3406(b)(3)-2).
    """
    gain = disposal.proceeds - disposal.cost
    discount = disposal.par - disposal.cost
    share = round_half_up(discount * disposal.held_days, disposal.term_days)
    line = TaxLine(disposal, max(gain if disposal.redeemed else min(gain, share), 0))
    if status is None or not line.is_sale or not status.withholds_on(disposal.disposed_on):
        return line
    return line._replace(withheld=round_half_up(disposal.proceeds * WITHHOLDING_PERCENT, 100))


def tax_years(year: int, disposed: Iterable[Disposal], status: TaxStatus) -> list[TaxYear]:
    """Return the figures of every Pocket in which bills were sold or redeemed in a calendar year, by their ids."""
    by_pocket: defaultdict[UUID, list[TaxLine]] = defaultdict(list)
    for each in disposed:
        if each.disposed_on.year == year:
            by_pocket[each.pocket_id].append(tax_line(each, status))
    return [
        TaxYear(pocket_id, year, lines, withheld=withheld_of(lines, status))
        for pocket_id, lines in sorted(by_pocket.items())
    ]


def withheld_of(lines: Sequence[TaxLine], status: TaxStatus) -> int:
    """Return the backup withholding of interest: 24 % of what was paid while the customer was subject to it.

    The interest of a sale is part of its gross proceeds, of which tax is withheld already.
    """
    subject = sum(
        line.interest for line in lines if not line.is_sale and status.withholds_on(line.disposal.disposed_on)
    )
    return round_half_up(subject * WITHHOLDING_PERCENT, 100)


def filing_of(form: TaxForm, years: Sequence[TaxYear], filing: Filing) -> Filing:
    """Return whether a customer's returns of a form are filed; `years` are those of all its Pockets."""
    small = form == TaxForm.INTEREST and sum(each.interest for each in years) < INTEREST_MINIMUM_CENTS
    if filing == Filing.FILED and small and not any(each.withheld for each in years):
        return Filing.BELOW_MINIMUM
    return filing


def boxes_of(year: TaxYear, form: TaxForm) -> list[tuple[str, int]]:
    """Return the boxes of a Pocket's form with their cents, as far as they may apply to bills."""
    if form == TaxForm.INTEREST:
        return [
            ("3 Interest on U.S. savings bonds and Treasury obligations", year.interest),
            ("4 Federal income tax withheld", year.withheld),
        ]
    return [
        ("1d Proceeds", year.proceeds),
        ("1e Cost or other basis", year.basis),
        ("1f Accrued market discount", 0),
        ("1g Wash sale loss disallowed", 0),
        ("4 Federal income tax withheld", year.withheld_of_proceeds),
        ("Short-term gain or loss", year.proceeds - year.basis),
    ]
