"""The numbers of docs/domain, worked out by the code: the opening deposit, its bills, its fee, its earnings."""

from datetime import date, datetime, timedelta
from decimal import Decimal
from itertools import pairwise

from tests.fixtures.teller import Customers
from tests.simulation.invariants import state_of

from billfold.bills.rules import fees, lots, valuation, yields
from billfold.bills.rules.earnings import compute_earnings
from billfold.bills.rules.market import Market
from billfold.platform.calendars import Calendars
from billfold.platform.dates import et_instant
from billfold.platform.money import PRICE_PAR_MICROS, cents_for

CALENDARS = Calendars()
MARKET = Market.packaged(CALENDARS)
DEPOSIT = 250_000_00
MONDAY = date(2025, 6, 2)
NINE = et_instant(MONDAY, 9)


def usd(cents: int) -> str:
    """Format cents: -1234567 as -12,345.67."""
    return f"{'-' if cents < 0 else ''}{abs(cents) // 100:,}.{abs(cents) % 100:02}"


def per_100(micros: int) -> str:
    """Format micros: 99754125 as 99.754125."""
    return f"{micros // 10**6}.{micros % 10**6:06}"


def percent(milli: int) -> str:
    """Format a rate in thousandths: 4220 as 4.220."""
    return f"{milli // 1000}.{milli % 1000:03}"


def worked() -> dict[str, str]:
    """Return every number of the worked example by name."""
    return _bill() | _bought() | _worth() | _sold() | _aged() | _matured() | _fee()


BILL = MARKET.on_the_run(4, MONDAY)
ASK = MARKET.ask(BILL, NINE)
UNITS = lots.affordable_units(DEPOSIT, ASK)
COST = cents_for(UNITS, ASK)


def _bill() -> dict[str, str]:
    return {
        "cusip": BILL.cusip,
        "isin": BILL.isin,
        "maturity": BILL.maturity.isoformat(),
        "first issue": BILL.first_issue.isoformat(),
        "bid rate": percent(MARKET.bid_rate(BILL, MONDAY)),
        "ask rate": percent(MARKET.ask_rate(BILL, MONDAY)),
        "ask": per_100(ASK),
        "bid today": per_100(MARKET.t0_bid(BILL, NINE)),
        "bid tomorrow": per_100(MARKET.t1_bid(BILL, NINE)),
        "settles": MARKET.settles_on(NINE).isoformat(),
    }


def _bought() -> dict[str, str]:
    paid = yields.investment_rate(ASK, MARKET.settles_on(NINE), BILL.maturity)
    return {"units": f"{UNITS:,}", "cost": usd(COST), "residue": usd(DEPOSIT - COST), "yield paid": f"{paid}"}


def _worth() -> dict[str, str]:
    worth = valuation.value_positions([(BILL.cusip, UNITS, 0)], DEPOSIT - COST, 0, market=MARKET, at=NINE)
    position = worth.positions[0]
    seconds = int((et_instant(BILL.maturity, 0) - NINE).total_seconds())
    return {
        "mark": per_100(position.mark_price),
        "market value": usd(position.market_value),
        "total value": usd(worth.total_value),
        "t0 on the day": usd(worth.liquidation_value_t0),
        "t1": usd(worth.liquidation_value_t1),
        "slope": f"{worth.appreciation_per_second}",
        "seconds": f"{seconds:,}",
        "yield shown": f"{Decimal(position.yield_to_maturity) * 100:.3f}",
        "paid out now": usd(cents_for(UNITS, MARKET.t0_bid(BILL, NINE)) + DEPOSIT - COST),
    }


def _sold() -> dict[str, str]:
    """Payments of $60,000.00 to another customer, and within the same customer."""
    found: dict[str, str] = {}
    for name, price in (("payment", MARKET.t0_bid(BILL, NINE)), ("reallocation", MARKET.t1_bid(BILL, NINE))):
        need = 60_000_00 - (DEPOSIT - COST)
        units = lots.units_to_sell(need, price)
        basis = lots.allocate_basis(COST, units, UNITS)
        proceeds = cents_for(units, price)
        found |= {
            f"{name} units": f"{units:,}",
            f"{name} proceeds": usd(proceeds),
            f"{name} left": usd(proceeds - need),
            f"{name} basis": usd(basis),
            f"{name} realised": f"{proceeds - basis} cents",
        }
    return found


def _aged() -> dict[str, str]:
    """Marks over time: on a tick, overnight, and over a weekend."""

    def mark(at: datetime) -> str:
        return per_100(MARKET.mark(BILL, at))

    friday_close = et_instant(date(2025, 6, 6), 17)
    return {
        "mark a minute later": mark(NINE + timedelta(minutes=1)),
        "mark at the close": mark(et_instant(MONDAY, 17)),
        "mark at midnight": mark(et_instant(MONDAY, 23, 59)),
        "line at 17:00": per_100(MARKET.price_at(BILL, et_instant(MONDAY, 17))),
        "line before the open": per_100(MARKET.price_at(BILL, et_instant(date(2025, 6, 3), 7, 59))),
        "friday": mark(friday_close),
        "saturday": mark(et_instant(date(2025, 6, 7), 12)),
    }


def _matured() -> dict[str, str]:
    at = et_instant(BILL.maturity, 8, 30)
    par = cents_for(UNITS, PRICE_PAR_MICROS)
    following = MARKET.on_the_run(4, BILL.maturity)
    return {
        "matures at": f"{CALENDARS.matures_at(BILL.maturity):%Y-%m-%d %H:%M} UTC",
        "par": usd(par),
        "gain": usd(par - COST),
        "next cusip": following.cusip,
        "next maturity": following.maturity.isoformat(),
        "next ask": per_100(MARKET.ask(following, at)),
        "next units": f"{lots.affordable_units(par + DEPOSIT - COST, MARKET.ask(following, at)):,}",
    }


def _fee() -> dict[str, str]:
    """The annual fee of 25 bps on the position, accrued for each day of June on which it was held."""
    accrued = fees.accrue_days(
        [(BILL.cusip, UNITS)], DEPOSIT - COST, after=date(2025, 6, 1), through=MONDAY, market=MARKET, bps=25
    )
    close = MARKET.mark(BILL, CALENDARS.closes_at(MONDAY))
    return {
        "value at the close": usd(cents_for(UNITS, close) + DEPOSIT - COST),
        "accrued": f"{accrued:,}",
        "accrued whole": f"{fees.split_accrued_fee(accrued)[0]}",
        "accrued rest": f"{fees.split_accrued_fee(accrued)[1]:,}",
        "charged on": fees.fee_charge_date(MONDAY, CALENDARS).isoformat(),
    }


EARNINGS_FIELDS = (
    "start_value",
    "contributions",
    "withdrawals",
    "end_value",
    "earnings_net",
    "fees",
    "earnings",
    "realised",
    "unrealised_change",
)


def earned() -> list[list[str]]:
    """The entries of docs/domain/earnings.md, their fields in the order of `EARNINGS_FIELDS`.

    One pocket from its first deposit to its first fee: 2 June, 3 to 30 June, 1 July, and all of it.
    """
    customers = Customers(now=NINE)
    anna, bert = customers.new_customer("Anna"), customers.new_customer("Bert")
    pocket, theirs = customers.new_pocket(anna), customers.new_pocket(bert)
    held = customers.bank.books[anna].pockets[pocket.id]
    ends = [(state_of(held), et_instant(MONDAY, 0))]
    customers.receive_money(pocket, DEPOSIT)
    customers.transfer(pocket, theirs, 60_000_00)
    for day in (MONDAY, date(2025, 6, 30), date(2025, 7, 1)):
        customers.bank.advance(et_instant(day, 9 if day == MONDAY else 18))
        ends.append((state_of(held), et_instant(day + timedelta(days=1), 0)))
    periods = [*pairwise(ends), (ends[0], ends[-1])]
    found = [compute_earnings(*start, *end, MARKET) for start, end in periods]
    return [[usd(getattr(each, name)) for name in EARNINGS_FIELDS] for each in found]
