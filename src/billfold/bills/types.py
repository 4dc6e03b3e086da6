"""Securities, CUSIPs, auctions, published quotes and struck prices.

Prices are integer micro-dollars per $100 face, rates integer thousandths of a percent
(5.290 % is 5290), quantities whole units of $100 face.

A simulated CUSIP is `SIM`, two digits of the year, the month in one hexadecimal digit, two
digits of the day, and a true check digit: `SIM26B193` matures on 2026-11-19. One maturity date
has one number, as bills of one maturity are one security. No Treasury issue begins with `SIM`.
"""

from dataclasses import dataclass
from datetime import date, datetime
from functools import lru_cache
from typing import Literal, NamedTuple
from uuid import NAMESPACE_OID, UUID, uuid5

import msgspec
from stdnum import cusip as stdnum_cusip
from stdnum import isin as stdnum_isin

from billfold.platform.database.rows import Row

_PREFIX = "SIM"
_CENTURY = 2000
_CUSIP_LENGTH = 9


def is_valid_cusip(cusip: str) -> bool:
    """Return whether this is nine upper-case characters with the right check digit."""
    return len(cusip) == _CUSIP_LENGTH and cusip == cusip.upper() and bool(stdnum_cusip.is_valid(cusip))


@lru_cache(maxsize=1024)
def tradable_id(cusip: str) -> UUID:
    """Return the id of a bill in the v1 reads: a name-based UUID of its CUSIP."""
    return uuid5(NAMESPACE_OID, f"cusip:{cusip}")


def isin_of(cusip: str) -> str:
    """Return the US ISIN of a CUSIP: country, CUSIP, Luhn digit."""
    return stdnum_isin.from_natid("US", cusip)


def is_simulated_cusip(cusip: str) -> bool:
    """Return whether a CUSIP was made by `simulated_cusip`'s rule."""
    return cusip.startswith(_PREFIX)


def simulated_cusip(maturity: date) -> str:
    """Return the CUSIP of the simulated bill of a maturity date, 2000-01-01 to 2099-12-31."""
    if maturity.year // 100 != _CENTURY // 100:
        raise ValueError(f"simulated bills mature in 2000 to 2099, not {maturity.isoformat()}")
    issue = f"{_PREFIX}{maturity.year % 100:02d}{maturity.month:X}{maturity.day:02d}"
    return issue + stdnum_cusip.calc_check_digit(issue)


def simulated_maturity(cusip: str) -> date | None:
    """Return the maturity date in a simulated CUSIP; None when it is not one."""
    if not (is_simulated_cusip(cusip) and is_valid_cusip(cusip)):
        return None
    try:
        return date(_CENTURY + int(cusip[3:5]), int(cusip[5], 16), int(cusip[6:8]))
    except ValueError:
        return None


@dataclass(frozen=True, slots=True)
class Bill:
    """One Treasury bill. Everything sold under its CUSIP is fungible, whatever the auction.

    `first_issue` and `original_term` are those of the first auction known; a bill may be
    reopened later under shorter terms.
    """

    cusip: str
    isin: str
    maturity: date
    first_issue: date
    original_term: str

    @property
    def simulated(self) -> bool:
        """True if the bill comes from the weekday rule and not from the Treasury."""
        return is_simulated_cusip(self.cusip)

    @property
    def description(self) -> str:
        """The words a customer reads next to the bill."""
        return "US T-Bill (simulated)" if self.simulated else "US T-Bill"


@dataclass(frozen=True, slots=True, kw_only=True)
class Auction:
    """One sale of a bill by the Treasury, identified by (cusip, issue_date).

    `basis` is the source of the rates: `published`, `derived` (from the published price) or
    `none` while there is no result. `reopening` is None when the source does not state it.
    """

    cusip: str
    term: str
    auction_date: date
    issue_date: date
    maturity: date
    announced_on: date | None = None
    high_rate_milli: int | None = None
    investment_milli: int | None = None
    price_micros: int | None = None
    reopening: bool | None = None
    cash_management: bool = False
    basis: str = "none"

    @property
    def weeks(self) -> int | None:
        """The term in weeks; None for cash management bills and terms counted in days."""
        number, _, unit = self.term.partition("-")
        return int(number) if unit == "Week" and not self.cash_management else None


@dataclass(frozen=True, slots=True)
class Quote:
    """The closing bid the Treasury publishes for one term on one day."""

    weeks: int
    discount_milli: int
    coupon_milli: int


@dataclass(frozen=True, slots=True)
class DailyRates:
    """All quotes of one business day, shortest term first, each term at most once."""

    day: date
    quotes: tuple[Quote, ...]


class PriceFile(NamedTuple):
    """A file of market data as it was published."""

    name: str
    content: bytes


class TwoSidedQuote(msgspec.Struct, frozen=True):
    """A dealer's quote of a bill for regular settlement, micro-dollars per $100."""

    dealer: str
    cusip: str
    quoted_at: datetime
    bid_micros: int
    ask_micros: int


class CurvePoint(msgspec.Struct, frozen=True):
    """A bill in a composite: its days to maturity, its rates (thousandths of a percent), and all of its quotes."""

    cusip: str
    days: int
    bid_milli: int
    ask_milli: int
    quotes: tuple[TwoSidedQuote, ...]


class PriceStrike(msgspec.Struct, frozen=True):
    """A composite of dealers' quotes of a day, shortest bill first, one point per number of days to maturity.

    `struck_at` is the instant of its newest quote, `oldest_at` that of its oldest one.
    """

    day: date
    struck_at: datetime
    oldest_at: datetime
    points: tuple[CurvePoint, ...]


class BillPrices(NamedTuple):
    """The prices of one bill at one tick.

    `yield_to_maturity` is a fraction as text ("0.05433"); `seconds_left` runs from the tick to
    00:00 Eastern of the maturity date and is 0 from then on.
    """

    bill: Bill
    mark_micros: int
    t0_bid_micros: int
    t1_bid_micros: int
    yield_to_maturity: str
    seconds_left: int


EarningsPeriod = Literal["wtd", "mtd", "ytd", "all-time", "range"]
"""The periods whose earnings a customer can ask for."""


class Period(NamedTuple):
    """A time span, start included and end excluded; `live` when it ends now.

    `by_instants` states for each end whether it was given as a date-time.
    """

    start: datetime
    end: datetime
    live: bool
    by_instants: tuple[bool, bool] = (False, False)


class BillSettlement(Row, frozen=True, kw_only=True):
    """All trades of one bill at one price on one side, as settled by the bank.

    `from_inventory`: met from the bank's own bills on the day of the trades, else settled with a dealer at their price.
    """

    table = "settlement"

    settles_on: date
    cusip: str
    price_micros: int
    side: str
    closed_on: date
    units: int
    customers_cents: int
    block_cents: int
    from_inventory: bool = False
