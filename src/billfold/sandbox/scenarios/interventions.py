"""The interventions of a scenario outside of the API: in the market, as an operator, and in the sandbox's processes."""

from collections.abc import Callable, Mapping
from datetime import date
from typing import Final, NamedTuple
from uuid import UUID

from billfold.bills.rules.pricing import subtract_spread
from billfold.bills.store import CalendarOverride, save_override
from billfold.bills.types import TwoSidedQuote
from billfold.identity.operators import Operator
from billfold.ledger.bank import Bank
from billfold.ledger.types import Origin
from billfold.platform.crypto import Vault
from billfold.platform.database.connection import Connection
from billfold.sandbox.dealers.books import DEALERS
from billfold.trading.decisions import change_order
from billfold.trading.settlement.decisions import send_again
from billfold.trading.types import OrderStatus
from billfold.trading.worker import place_round
from billfold.treasury.market_log import market_change
from billfold.treasury.price_fetch import strike_prices

SHOCK_DAYS: Final = 14
_MILLI_PER_BASIS_POINT: Final = 10
_QUOTED_WEEKS: Final = (4, 13, 26, 52)
_SHIFT = """
UPDATE bill_rate SET discount_milli = greatest(discount_milli + $2, 1), coupon_milli = greatest(coupon_milli + $2, 1)
 WHERE day > $1 AND day <= $1 + $3::int
"""


class Interventions(NamedTuple):
    """The functions of a scenario that block until they are done.

    Rates change by basis points from the day after a day. Settings, as a person writes them, are those of every process
    until they are changed again: without any, they are those of the start.
    """

    shift_rates: Callable[[date, int], None]
    close_market: Callable[[date, str], None]
    quote_prices: Callable[[], None]
    place_orders: Callable[[], None]
    cancel_order: Callable[[str], None]
    send_instruction: Callable[[str], None]
    change_settings: Callable[[Mapping[str, str]], None]
    kill_worker: Callable[[], None]


async def shift_rates(conn: Connection, vault: Vault, day: date, basis_points: int) -> None:
    """Publish other Treasury rates for two weeks after a day. Bookings by earlier rates stay."""
    async with conn.transaction(), market_change(conn, vault, Origin.system()):
        await conn.execute(_SHIFT, day, basis_points * _MILLI_PER_BASIS_POINT, SHOCK_DAYS)


async def close_market(conn: Connection, vault: Vault, day: date, reason: str) -> None:
    """Close the bond market on a future day."""
    async with conn.transaction(), market_change(conn, vault, Origin.system()):
        await save_override(conn, CalendarOverride(day, "closed", None, None, reason))


async def quote_prices(bank: Bank) -> None:
    """Let the dealers quote both sides of the newest bills now, around their marks."""
    now, market = await bank.now(), bank.market
    bills = [market.on_the_run(weeks, market.calendars.pricing_day(now)) for weeks in _QUOTED_WEEKS]
    quotes = [
        TwoSidedQuote(
            dealer, bill.cusip, now, *(subtract_spread(market.mark(bill, now), side) for side in (spread, -spread))
        )
        for dealer, spread in DEALERS.items()
        for bill in bills
    ]
    await strike_prices(bank, quotes)


async def place_orders(bank: Bank) -> None:
    """Place the orders of a round, and do not wait for the dealers."""
    await place_round(bank, is_due=True, origin=Origin.system())


async def cancel_order(bank: Bank, order_id: str) -> None:
    """Cancel an order, or ask its dealer to."""
    await change_order(bank, UUID(order_id), OrderStatus.CANCELLED, reason="Played by a scenario", by=_operator(bank))


async def send_instruction(bank: Bank, instruction_id: str) -> None:
    """Send a rejected instruction again."""
    await send_again(bank, UUID(instruction_id), reason="Played by a scenario", by=_operator(bank))


def _operator(bank: Bank) -> Operator:
    return Operator.of_command_line(bank.settings.operator)
