"""In which capacity the bank made a trade. Pure."""

from datetime import datetime

from billfold.platform.calendars import Calendars
from billfold.reports.confirmations.types import Capacity


def capacity_at(traded_at: datetime, calendars: Calendars) -> Capacity:
    """Return the capacity of a trade: with the market closed there is nobody but the bank to trade with."""
    return Capacity.AGENT if calendars.is_trading(traded_at) else Capacity.PRINCIPAL
