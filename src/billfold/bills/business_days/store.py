"""The overrides on record, and the calendars corrected by them."""

from __future__ import annotations

from datetime import date, time
from typing import TYPE_CHECKING

import msgspec

from billfold.platform.calendars import Calendars, DayOverride

if TYPE_CHECKING:
    from billfold.platform.database.pool import Connection

_LIST = "SELECT day, bond_market, closes_at, fed, reason FROM calendar_override ORDER BY day"


class CalendarOverride(msgspec.Struct, frozen=True):
    """One day as the operator knows it. The bond market is open, early or closed."""

    day: date
    bond_market: str
    closes_at: time | None
    fed: str
    reason: str


async def list_overrides(conn: Connection) -> list[CalendarOverride]:
    """Return every override, earliest day first."""
    return [CalendarOverride(*row) for row in await conn.fetch(_LIST)]


async def load_calendars(conn: Connection) -> Calendars:
    """Return the calendars with every override on record."""
    overrides = await list_overrides(conn)
    return Calendars(
        {
            each.day: DayOverride(
                fed_open=each.fed == "open", bond_open=each.bond_market != "closed", closes=each.closes_at
            )
            for each in overrides
        }
    )
