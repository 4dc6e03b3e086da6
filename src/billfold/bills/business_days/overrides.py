"""Sets and removes an operator's override of a day."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING

from billfold.bills.business_days.store import CalendarOverride

if TYPE_CHECKING:
    from billfold.platform.database.pool import Connection

_UPSERT = """
INSERT INTO calendar_override (day, bond_market, closes_at, fed, reason)
VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (day) DO UPDATE
   SET bond_market = excluded.bond_market, closes_at = excluded.closes_at, fed = excluded.fed,
       reason = excluded.reason
"""
_REMOVE = "DELETE FROM calendar_override WHERE day = $1 RETURNING true"


async def save_override(conn: Connection, override: CalendarOverride) -> None:
    """Write an override down; it replaces an earlier one of the day."""
    await conn.execute(_UPSERT, override.day, override.bond_market, override.closes_at, override.fed, override.reason)


async def remove_override(conn: Connection, day: date) -> bool:
    """Remove the override of a day; return whether there was one."""
    return bool(await conn.fetchval(_REMOVE, day))
