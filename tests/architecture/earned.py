"""The numbers of docs/domain/earnings.md: one pocket from its first deposit to its first fee."""

from datetime import date

from tests.architecture.worked import usd
from tests.architecture.world import MARKET, World

from billfold.bills.rules import earnings
from billfold.bills.rules.earnings import PocketState
from billfold.platform.dates import et_instant

FIELDS = (
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
BEGUN, NEXT_DAY, JULY, END = (
    et_instant(day, 0) for day in (date(2025, 6, 2), date(2025, 6, 3), date(2025, 7, 1), date(2025, 7, 2))
)


def signed(cents):
    """-1234 is -12.34."""
    return f"-{usd(-cents)}" if cents < 0 else usd(cents)


def earned():
    """Every entry of the example under its name, its fields in the order of `FIELDS`."""
    world = World()
    anna, bert = world.customer("Anna"), world.customer("Bert")
    pocket, berts = world.pocket(anna), world.pocket(bert)
    world.at(date(2025, 6, 2), 9)
    empty = _state(world, anna, pocket)
    world.receive(anna, pocket, 250_000_00)
    world.pay(anna, pocket, bert, berts, 60_000_00)
    first = _state(world, anna, pocket)
    world.at(date(2025, 6, 30), 18)
    world.catch_up(anna)
    second = _state(world, anna, pocket)
    world.at(date(2025, 7, 1), 18)
    world.catch_up(anna)
    third = _state(world, anna, pocket)
    return {
        "2 June": _entry(empty, BEGUN, first, end_at=NEXT_DAY),
        "3 to 30 June": _entry(first, NEXT_DAY, second, end_at=JULY),
        "1 July": _entry(second, JULY, third, end_at=END),
        "all": _entry(empty, BEGUN, third, end_at=END),
    }


def _entry(start, start_at, end, end_at):
    found = earnings.compute_earnings(start, start_at, end, end_at=end_at, market=MARKET)
    return [signed(getattr(found, name)) for name in FIELDS]


def _state(world, customer, pocket):
    held = world.books[customer].pockets[pocket[0]]
    return PocketState(
        positions=tuple(held.positions()),
        cash=held.cash.balance,
        earnings_basis=held.earnings_basis(),
        inflow=held.inflow,
        outflow=held.outflow,
        fees=held.fees,
        realised=held.realised,
    )
