"""Tax forms: disposals of parts of lots, boxes and filing, from movements of lots. Pure.

A bill held to maturity pays interest: par less cost. A bill sold before pays interest up to its straight-line share of
the acquisition discount (IRC 1271(a)(3), 1283); any further gain is short-term capital gain.

Amounts are cents, units bills of $100 face, dates Eastern calendar days.
"""

from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Sequence
from datetime import date, datetime, time, timedelta
from enum import StrEnum
from typing import Final, NamedTuple
from uuid import UUID

from billfold.bills.rules.lots import allocate_basis
from billfold.platform.dates import et_date, et_instant
from billfold.platform.errors import InvariantError
from billfold.platform.money import PRICE_PAR_MICROS, cents_for, round_half_up


class TaxForm(StrEnum):
    """The forms of the Internal Revenue Service that a customer may receive."""

    INTEREST = "1099-INT"
    BROKER = "1099-B"


class LotMovement(NamedTuple):
    """The bills of one posting: out of a lot, into one, or both; with their trade unless they stay with the customer.

    `activity` is that of the trade: `trade_units` for `notional`, with `tax_basis` in total.
    """

    entry_no: int
    units: int
    cusip: str
    from_lot: int | None
    from_pocket: UUID | None
    acquired_on: date | None
    into_lot: int | None
    trade_id: UUID | None
    activity: str | None
    traded_at: datetime | None
    trade_units: int
    notional: int
    tax_basis: int


class Disposal(NamedTuple):
    """A part of a lot that was sold or redeemed. `term_days` run from its purchase to the bill's maturity."""

    pocket_id: UUID
    trade_id: UUID
    cusip: str
    acquired_on: date
    disposed_on: date
    maturity: date
    redeemed: bool
    units: int
    proceeds: int
    cost: int

    @property
    def par(self) -> int:
        """The amount the bills pay at maturity."""
        return cents_for(self.units, PRICE_PAR_MICROS)

    @property
    def term_days(self) -> int:
        """Days from the purchase to the maturity, at least one."""
        return max((self.maturity - self.acquired_on).days, 1)

    @property
    def held_days(self) -> int:
        """Days from the purchase to the disposal, at most the term."""
        return min(max((self.disposed_on - self.acquired_on).days, 0), self.term_days)


class TaxLine(NamedTuple):
    """A disposal, and how much of its gain is interest. The rest of a gain is capital gain; a loss is all capital.

    `withheld` is the backup withholding of its proceeds, which only a sale has.
    """

    disposal: Disposal
    interest: int
    withheld: int = 0

    @property
    def basis(self) -> int:
        """The cost including the interest, which is reported on the other form: nothing is counted twice."""
        return self.disposal.cost + self.interest

    @property
    def gain(self) -> int:
        """The short-term capital gain; below zero for a loss."""
        return self.disposal.proceeds - self.basis

    @property
    def account(self) -> str:
        """The account number that distinguishes its return from the recipient's others: 20 characters."""
        age = (self.disposal.disposed_on - self.disposal.acquired_on).days
        return f"{self.disposal.trade_id.hex[-16:].upper()}{age % 10_000:04d}"

    @property
    def is_sale(self) -> bool:
        """True if it belongs on Form 1099-B: a bill sold before maturity, or redeemed for less than its cost."""
        return not self.disposal.redeemed or self.gain < 0


class TaxStatus(NamedTuple):
    """A customer's tax status: `exempt` None means that its type of business decides."""

    customer_id: UUID
    exempt: bool | None = None
    withholding_from: date | None = None
    withholding_until: date | None = None

    def withholds_on(self, day: date) -> bool:
        """Return whether payments on a day are subject to backup withholding."""
        since, until = self.withholding_from, self.withholding_until
        return since is not None and since <= day and (until is None or day < until)


class Filing(StrEnum):
    """The filing status of a form: filed with the IRS, or the reason why not."""

    FILED = "FILED"
    EXEMPT = "EXEMPT"
    FOREIGN = "FOREIGN"
    BELOW_MINIMUM = "BELOW_MINIMUM"


class TinType(StrEnum):
    """The type code of a taxpayer identification number in an IRS file: employer or person."""

    EIN = "1"
    SSN = "2"
    UNKNOWN = " "


class TaxYear(NamedTuple):
    """A Pocket's figures of one calendar year. `withheld` of its interest is box 4 of Form 1099-INT."""

    pocket_id: UUID
    year: int
    lines: list[TaxLine]
    withheld: int

    @property
    def withheld_of_proceeds(self) -> int:
        """Box 4 of Form 1099-B."""
        return sum(line.withheld for line in self.lines)

    @property
    def account(self) -> str:
        """The Pocket's account number on the forms: 20 characters."""
        return self.pocket_id.hex[-20:].upper()

    @property
    def interest(self) -> int:
        """Box 3 of Form 1099-INT."""
        return sum(line.interest for line in self.lines)

    @property
    def sales(self) -> list[TaxLine]:
        """The lines of Form 1099-B."""
        return [line for line in self.lines if line.is_sale]

    @property
    def proceeds(self) -> int:
        """Box 1d of Form 1099-B."""
        return sum(line.disposal.proceeds for line in self.sales)

    @property
    def basis(self) -> int:
        """Box 1e of Form 1099-B."""
        return sum(line.basis for line in self.sales)

    @property
    def forms(self) -> list[TaxForm]:
        """The forms that have any figures."""
        has = {TaxForm.INTEREST: self.interest > 0, TaxForm.BROKER: bool(self.sales)}
        return [form for form in TaxForm if has[form]]


INTEREST_MINIMUM_CENTS: Final = 10_00
"""Interest of one customer below this amount in a year need not be filed (IRC 6049(a))."""
WITHHOLDING_PERCENT: Final = 24
_CLOSED_DAYS_MAX: Final = timedelta(days=15)
_TERM_DAYS_MAX: Final = timedelta(days=52 * 7 + 15)
_MADE_AT: Final = time(6)
_MADE_ON: Final = (1, 15)
"""Month and day of the next year on which forms are made: before the first due date (31 January)."""
DISPOSING: Final = ("SELL", "MATURITY")


def year_bounds(year: int) -> tuple[datetime, datetime]:
    """Return the instants at which a calendar year begins and ends in New York."""
    return et_instant(date(year, 1, 1), time()), et_instant(date(year + 1, 1, 1), time())


def due_at(year: int) -> datetime:
    """Return the instant from which the forms of a calendar year are made."""
    return et_instant(date(year + 1, *_MADE_ON), _MADE_AT)


def is_relevant(maturity: date, year: int) -> bool:
    """Return whether a bill can have been sold or redeemed in a calendar year: one that matured before it is gone.

    Its lots were bought at most 52 weeks before its maturity, which is paid a few days later if that day is closed.
    """
    return maturity > date(year, 1, 1) - _CLOSED_DAYS_MAX


def first_purchase(year: int) -> datetime:
    """Return the earliest purchase of lots of bills that are relevant for a calendar year."""
    return et_instant(date(year, 1, 1) - _CLOSED_DAYS_MAX - _TERM_DAYS_MAX, time())


def years_due(first: int | None, finished: Container[int], now: datetime) -> list[int]:
    """Return the years since the first whose forms are due and not all made."""
    return [year for year in range(first or now.year, now.year) if year not in finished and due_at(year) <= now]


class _Remainder:
    """Units and cents that are not used yet; the parts taken add up to the whole."""

    __slots__ = ("cents", "units")

    def __init__(self, units: int = 0, cents: int = 0) -> None:
        self.units, self.cents = units, cents

    def take(self, units: int) -> int:
        part = allocate_basis(self.cents, units, self.units)
        self.units -= units
        self.cents -= part
        return part


class _TradeRest:
    """A trade whose postings are processed one by one: its money, its basis, and the cost processed so far."""

    __slots__ = ("basis", "cost", "money")

    def __init__(self, trade: LotMovement) -> None:
        self.money = _Remainder(trade.trade_units, trade.notional)
        self.basis = _Remainder(trade.trade_units, trade.tax_basis)
        self.cost = 0


class LotReplay:
    """The lots of a customer, empty before the first movement is replayed."""

    def __init__(self, maturity_of: Callable[[str], date]) -> None:
        self._maturity_of = maturity_of
        self._lots: defaultdict[int, _Remainder] = defaultdict(_Remainder)
        self._trades: dict[UUID, _TradeRest] = {}

    def play(self, movement: LotMovement) -> Disposal | None:
        """Return the disposal made by a movement, if any; movements come in booking order.

        The bills take their share of the lot's remaining cost, as in the ledger, and of the trade's money by units.
        Raises InvariantError if the parts of a trade do not add up to its basis.
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
    """Return the interest part of a gain: all of it at maturity, before that at most a share of the discount.

    On a sale 24 % of the gross proceeds are withheld while the customer is subject to it (26 CFR 31.3406(b)(3)-2).
    """
    gain = disposal.proceeds - disposal.cost
    discount = disposal.par - disposal.cost
    share = round_half_up(discount * disposal.held_days, disposal.term_days)
    line = TaxLine(disposal, max(gain if disposal.redeemed else min(gain, share), 0))
    if status is None or not line.is_sale or not status.withholds_on(disposal.disposed_on):
        return line
    return line._replace(withheld=round_half_up(disposal.proceeds * WITHHOLDING_PERCENT, 100))


def tax_years(year: int, disposed: Iterable[Disposal], status: TaxStatus) -> list[TaxYear]:
    """Return the figures of every Pocket with sales or redemptions in a calendar year, in the order of their ids."""
    by_pocket: defaultdict[UUID, list[TaxLine]] = defaultdict(list)
    for each in disposed:
        if each.disposed_on.year == year:
            by_pocket[each.pocket_id].append(tax_line(each, status))
    return [
        TaxYear(pocket_id, year, lines, withheld=withheld_of(lines, status))
        for pocket_id, lines in sorted(by_pocket.items())
    ]


def withheld_of(lines: Sequence[TaxLine], status: TaxStatus) -> int:
    """Return the backup withholding on interest: 24 % of interest paid while the customer was subject to it.

    The interest of a sale is part of its gross proceeds, from which tax is already withheld.
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
    """Return the boxes of a Pocket's form with their cents, limited to those that can apply to bills."""
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
