"""What scenarios change of the market: rates that have not been published yet, and a day on which it is closed."""

from datetime import date

from billfold.bills.store import CalendarOverride, save_override
from billfold.ledger.types import Origin
from billfold.platform.crypto import Vault
from billfold.platform.database.connection import Connection
from billfold.treasury.market_log import market_change

SHOCK_DAYS = 14
_MILLI_PER_BASIS_POINT = 10
_SHIFT = """
UPDATE bill_rate SET discount_milli = greatest(discount_milli + $2, 1), coupon_milli = greatest(coupon_milli + $2, 1)
 WHERE day > $1 AND day <= $1 + $3::int
"""


async def shift_rates(conn: Connection, vault: Vault, day: date, basis_points: int) -> None:
    """Let the Treasury publish other rates for two weeks after a day. What was booked by rates until then stays."""
    async with conn.transaction(), market_change(conn, vault, Origin.system()):
        await conn.execute(_SHIFT, day, basis_points * _MILLI_PER_BASIS_POINT, SHOCK_DAYS)


async def close_market(conn: Connection, vault: Vault, day: date, reason: str) -> None:
    """Close the bond market on a day to come."""
    async with conn.transaction(), market_change(conn, vault, Origin.system()):
        await save_override(conn, CalendarOverride(day, "closed", None, None, reason))
