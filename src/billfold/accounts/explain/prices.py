"""Prices of a bill explained from the rates of a day: bid rate, bids, ask, mark and yield."""

from collections.abc import Callable
from datetime import date, datetime
from enum import StrEnum
from fractions import Fraction

from billfold.accounts.explain.schemas import Explanation, Formula, Input, Row, RowKind, Unit, explain, given
from billfold.bills.rules import pricing, yields
from billfold.bills.rules.market import Market
from billfold.bills.types import Bill
from billfold.http.schemas import format_price
from billfold.platform.dates import et_date, et_instant
from billfold.platform.money import PRICE_PAR_MICROS

SOURCE = "Daily Treasury Bill Rates, closing bids, US Department of the Treasury"
QUOTED = "Dealers' quotes, the median of each bill"
_SIX = "half up to six decimals"
_MICROS = 1_000_000


class PriceField(StrEnum):
    """The prices and rates of a bill."""

    MARK_PRICE = "mark_price"
    BID_T0 = "bid_t0"
    BID_T1 = "bid_t1"
    ASK = "ask"
    YIELD_TO_MATURITY = "yield_to_maturity"


def explain_price(market: Market, bill: Bill, at: datetime, field: PriceField) -> Explanation:
    """Explain the price of a trade at an instant, or the price in a Pocket at its tick."""
    explained: dict[PriceField, Callable[[], Explanation]] = {
        PriceField.MARK_PRICE: lambda: mark(market, bill, market.tick_at(at), matured=at >= market.matures_at(bill)),
        PriceField.BID_T0: lambda: bid_t0(market, bill, at),
        PriceField.BID_T1: lambda: bid(
            market, bill, market.calendars.pricing_day(at), market.settles_on(at), comes_to=market.t1_bid(bill, at)
        ),
        PriceField.ASK: lambda: ask(market, bill, at),
        PriceField.YIELD_TO_MATURITY: lambda: yield_to_maturity(market, bill, at),
    }
    return explained[field]()


def tick_row(bill: Bill, price_micros: int, at: datetime, *, label: str = "Price at the tick") -> Row:
    """Return the row of a computed price."""
    price = format_price(price_micros)
    return Row(kind=RowKind.PRICE, label=label, id=bill.cusip, cusip=bill.cusip, price=price, at=at, source=SOURCE)


def mark(market: Market, bill: Bill, at: datetime, *, matured: bool = False) -> Explanation:
    """Explain the bid at an instant: the same-day bid on the straight line to par."""
    label, day = "Price", market.calendars.pricing_day(at)
    if matured or at >= market.matures_at(bill):
        return par(bill, at)
    opens, matures = et_instant(day, 0), market.matures_at(bill)
    price = market.price_at(bill, at)
    return explain(
        label,
        "The bid of the day at 00:00 Eastern, and from there on a straight line to par at maturity, as far as this"
        " instant: the discount shrinks with the time that is left.",
        Formula("P", "round(100 - (100 - B) * (M - T) / (M - O), 6)", Unit.USD_PER_100, label, _SIX),
        comes_to=_usd(price),
        inputs=[
            given("T", "Instant at which the price was struck", at, Unit.INSTANT),
            given("O", "00:00 Eastern of the day of the bid", opens, Unit.INSTANT),
            given("M", "Maturity, 00:00 Eastern", matures, Unit.INSTANT),
        ],
        parts=[bid(market, bill, day, day)],
        rows=[tick_row(bill, price, at)],
    )


def par(bill: Bill, at: datetime, symbol: str = "P") -> Explanation:
    """Explain the price of a bill that has matured."""
    return explain(
        "Price",
        "The bill has matured: it is worth par.",
        Formula(symbol, "100", Unit.USD_PER_100, "Par"),
        comes_to=100,
        inputs=[given("M", "Maturity", bill.maturity, Unit.DATE)],
        rows=[tick_row(bill, PRICE_PAR_MICROS, at)],
    )


def bid_t0(market: Market, bill: Bill, at: datetime) -> Explanation:
    """Explain the bid for settlement on the day itself, before the bank's spread."""
    day = market.calendars.pricing_day(at)
    return par(bill, at, "B") if at >= market.matures_at(bill) else bid(market, bill, day, day)


def bid(market: Market, bill: Bill, day: date, settles_on: date, *, comes_to: int | None = None) -> Explanation:
    """Explain the bid at the rates of a day for settlement on a day. `comes_to` is the price as served, in micros."""
    rate = market.bid_rate(bill, day)
    days = (bill.maturity - settles_on).days
    price = pricing.price_from_rate(rate, days) if comes_to is None else comes_to
    return explain(
        "Bid",
        "Par less the discount: the bid rate for the days from settlement to maturity, in a year of 360 days.",
        Formula("r", "M - S", Unit.DAYS, "Days from settlement to maturity"),
        Formula("B", "round(100 - d * max(0, r) / 360, 6)", Unit.USD_PER_100, "Bid", _SIX),
        comes_to=_usd(price),
        inputs=_days(bill, settles_on),
        parts=[bid_rate(market, bill, day)],
    )


def ask(market: Market, bill: Bill, at: datetime) -> Explanation:
    """Explain the ask of a bill."""
    day = market.calendars.pricing_day(at)
    spread = format_rate(market.spread(day))
    return explain(
        "Ask",
        f"As the bid, at a rate {spread} percent lower, for settlement on the next settlement day.",
        Formula("a", f"max(0, d - {spread})", Unit.PERCENT, "Ask rate"),
        Formula("r", "M - S", Unit.DAYS, "Days from settlement to maturity"),
        Formula("A", "round(100 - a * max(0, r) / 360, 6)", Unit.USD_PER_100, "Ask", _SIX),
        comes_to=_usd(market.ask(bill, at)),
        inputs=_days(bill, market.calendars.next_settlement_day(day)),
        parts=[bid_rate(market, bill, day)],
        rows=[tick_row(bill, market.ask(bill, at), market.tick_at(at))],
    )


def bid_rate(market: Market, bill: Bill, day: date) -> Explanation:
    """Explain the discount rate of a bid: from the curve of the day, at its days to maturity."""
    published, nodes = market.curve(day)
    left, right = pricing.neighbours(nodes, (bill.maturity - day).days)
    label, grid = "Bid rate", "half up to steps of 0.005 percent"
    is_negative = pricing.interpolated_rate(nodes, (bill.maturity - day).days) < 0
    step = "max(0, 0.005 * round({} / 0.005))" if is_negative else "0.005 * round({} / 0.005)"
    inputs = [
        given(
            "f", f"Rate for {left[0]} days", _percent(left[1]), Unit.PERCENT, rows=[_rate_row(market, published, left)]
        )
    ]
    if left == right:
        words = f"The published rate nearest to the days left: that for {left[0]} days."
        steps = [Formula("d", step.format("f"), Unit.PERCENT, label, grid)]
    else:
        words = f"On the straight line between the published rates for {left[0]} and {right[0]} days."
        inputs += [
            given(
                "g",
                f"Rate for {right[0]} days",
                _percent(right[1]),
                Unit.PERCENT,
                rows=[_rate_row(market, published, right)],
            ),
            given("m", "Days of the shorter rate", left[0], Unit.DAYS),
            given("n", "Days of the longer rate", right[0], Unit.DAYS),
            given("D", "Day whose rates they are", day, Unit.DATE),
            given("M", "Maturity", bill.maturity, Unit.DATE),
        ]
        steps = [
            Formula("l", "f + (g - f) * (M - D - m) / (n - m)", Unit.PERCENT, "Rate on the line"),
            Formula("d", step.format("l"), Unit.PERCENT, label, grid),
        ]
    return explain(label, words, *steps, comes_to=_percent(market.bid_rate(bill, day)), inputs=inputs)


def yield_to_maturity(market: Market, bill: Bill, at: datetime) -> Explanation:
    """Explain the investment rate of the day's bid (31 CFR 356, appendix B)."""
    tick = market.tick_at(at)
    day, prices = market.calendars.pricing_day(tick), market.tick_prices(at)[bill.cusip]
    days = (bill.maturity - day).days
    price = par(bill, tick, "B") if bill.maturity <= et_date(at) else bid(market, bill, day, day)
    label, rounding = "Yield to maturity", "half up to three decimals of a percent"
    last = Formula("Y", "i / 100", Unit.FRACTION, label)
    if days <= 0:
        steps, words = [Formula("Y", "0", Unit.FRACTION, label)], "Nothing is left to earn."
    elif days <= yields.SIMPLE_DAYS_MAX:
        words = "What the bid earns until maturity, as simple interest of a year of 365 or 366 days."
        formula = "round(100 * (100 - B) * (E - S) / (B * (M - S)), 3)"
        steps = [Formula("i", formula, Unit.PERCENT, "Investment rate", rounding), last]
    else:
        words = "What the bid earns until maturity, compounded once after half a year, as the Treasury figures it."
        steps = [
            Formula("b", "(M - S) / (E - S)", Unit.FRACTION, "Part of a year"),
            Formula("a", "b / 2 - 0.25", Unit.FRACTION, "Part beyond half a year, halved"),
            Formula("c", "(B - 100) / B", Unit.FRACTION, "Discount by price, negative"),
            Formula(
                "i",
                "round(100 * (sqrt(b * b - 4 * a * c) - b) / (2 * a), 3)",
                Unit.PERCENT,
                "Investment rate",
                rounding,
            ),
            last,
        ]
    inputs = [*_days(bill, day), given("E", "The same day of the next year", yields.year_after(day), Unit.DATE)]
    return explain(label, words, *steps, comes_to=prices.yield_to_maturity, inputs=inputs, parts=[price])


def _days(bill: Bill, settles_on: date) -> list[Input]:
    return [given("S", "Settlement", settles_on, Unit.DATE), given("M", "Maturity", bill.maturity, Unit.DATE)]


def _rate_row(market: Market, published: date, node: tuple[int, int]) -> Row:
    days, rate_milli = node
    is_quoted = market.is_quoted(published)
    term = f"{days} days" if is_quoted else f"{days // 7} weeks"
    return Row(
        kind=RowKind.RATE,
        label=f"Rate of {published} for {term}",
        id=f"{published}/{days}d" if is_quoted else f"{published}/{days // 7}",
        on=published,
        rate=format_rate(rate_milli),
        source=QUOTED if is_quoted else SOURCE,
    )


def format_rate(rate_milli: int) -> str:
    """Return a rate in percent with its three decimals."""
    return f"{rate_milli // 1000}.{rate_milli % 1000:03d}"


def _percent(rate_milli: int) -> Fraction:
    return Fraction(rate_milli, 1000)


def _usd(micros: int) -> Fraction:
    return Fraction(micros, _MICROS)
