"""What tax forms are made of: movements of lots, disposals of parts of lots, and what an owner is to the IRS.

Amounts are cents, units bills of $100 face, dates Eastern calendar days.
"""

from datetime import date, datetime
from enum import StrEnum
from typing import NamedTuple
from uuid import UUID

from billfold.platform.money import PRICE_PAR_MICROS, cents_for


class TaxForm(StrEnum):
    """The forms of the Internal Revenue Service that a customer may receive."""

    INTEREST = "1099-INT"
    BROKER = "1099-B"


class LotMovement(NamedTuple):
    """The bills of one posting: out of a lot, into one, or both; with their trade unless they stay with the customer.

    `activity` is that of the trade, which has `trade_units` for `notional`, with `tax_basis` in all.
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
        """What the bills pay at maturity."""
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

    `withheld` is the backup withholding of its proceeds, which a sale alone has.
    """

    disposal: Disposal
    interest: int
    withheld: int = 0

    @property
    def basis(self) -> int:
        """The cost with the interest, which is reported on the other form: nothing is counted twice."""
        return self.disposal.cost + self.interest

    @property
    def gain(self) -> int:
        """The short-term capital gain; below zero for a loss."""
        return self.disposal.proceeds - self.basis

    @property
    def account(self) -> str:
        """What tells its return from the others of its recipient: 20 characters."""
        age = (self.disposal.disposed_on - self.disposal.acquired_on).days
        return f"{self.disposal.trade_id.hex[-16:].upper()}{age % 10_000:04d}"

    @property
    def is_sale(self) -> bool:
        """Whether it belongs on Form 1099-B: a bill sold before maturity, or redeemed at less than it cost."""
        return not self.disposal.redeemed or self.gain < 0


class TaxStatus(NamedTuple):
    """What the bank knows of a customer for its forms: `exempt` None means that its type of business decides."""

    customer_id: UUID
    exempt: bool | None = None
    withholding_from: date | None = None
    withholding_until: date | None = None

    def withholds_on(self, day: date) -> bool:
        """Tell whether what is paid on a day is subject to backup withholding."""
        since, until = self.withholding_from, self.withholding_until
        return since is not None and since <= day and (until is None or day < until)


class Filing(StrEnum):
    """Whether a form goes to the IRS, or why it does not."""

    FILED = "FILED"
    EXEMPT = "EXEMPT"
    FOREIGN = "FOREIGN"
    BELOW_MINIMUM = "BELOW_MINIMUM"


class TinType(StrEnum):
    """The code of a taxpayer identification number in a file for the IRS: of an employer, or of a person."""

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
        """The Pocket as the IRS knows it: 20 characters."""
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
        """The forms that there is something to say on."""
        has = {TaxForm.INTEREST: self.interest > 0, TaxForm.BROKER: bool(self.sales)}
        return [form for form in TaxForm if has[form]]
