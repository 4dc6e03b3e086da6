"""Dates as they may have been decided: an operator may override a day at any time.

What was decided before an override stays decided, so a date is wrong only when neither the calendars
as they are now nor the calendars without any override would have set it.
"""

from collections.abc import Iterable
from datetime import date, datetime

from billfold.bills.rules.fees import fee_charge_date
from billfold.ledger.book.book import pocket_due
from billfold.ledger.book.holdings import PocketBook
from billfold.platform.calendars import Calendars
from billfold.platform.dates import et_date

_FIRST_MONTH = date(1, 1, 31)


class CalendarVariants:
    """What the calendars say now, or said before an operator overrode them."""

    def __init__(self, calendars: Calendars) -> None:
        self._variants = [calendars]
        if calendars.overrides:
            without_overrides = Calendars(
                opens=calendars.opens, closes=calendars.closes, invests_until=calendars.invests_until
            )
            self._variants.append(without_overrides)

    def is_settlement_day(self, day: date) -> bool:
        """Could bills settle on this day?"""
        return any(each.is_settlement_day(day) for each in self._variants)

    def closes(self, day: date) -> list[datetime]:
        """When that day may have ended, the latest first."""
        return sorted((each.closes_at(day) for each in self._variants), reverse=True)

    def business_dates(self, at: datetime) -> set[date]:
        """To which days this instant may have belonged."""
        return {each.business_date(at) for each in self._variants}

    def is_opening(self, at: datetime) -> bool:
        """Is it the hour at which a day of the market begins?"""
        return self._variants[0].opens_at(et_date(at)) == at

    def waits_for_market_open(self, at: datetime, until: date) -> bool:
        """Does cash that came at this instant wait for the opening of this day?"""
        return any(not each.may_invest(at) and until == et_date(each.next_open(at)) for each in self._variants)

    def charge_dates(self, day: date) -> set[date]:
        """When the fee of the month of this day may be charged."""
        return {fee_charge_date(day, each) for each in self._variants}

    def is_charge_date(self, day: date) -> bool:
        """Is the fee of the month before this day charged on it?"""
        if day <= _FIRST_MONTH:
            return False
        before = date(day.year - (day.month == 1), (day.month - 2) % 12 + 1, 1)
        return day in self.charge_dates(before)

    def is_first_due(self, due: datetime | None, pockets: Iterable[PocketBook]) -> bool:
        """May this be when something is first due in these pockets?"""
        each_pocket = [
            [at for each in self._variants if (at := pocket_due(pocket, each)) is not None] for pocket in pockets
        ]
        dues = [instants for instants in each_pocket if instants]
        if not dues or due is None:
            return due is None and not dues
        first, last = min(map(min, dues)), min(map(max, dues))
        return first <= due <= last and any(due in instants for instants in dues)

    def first_due(self, pockets: Iterable[PocketBook]) -> datetime | None:
        """When something is first due as the calendars are now."""
        dues = (pocket_due(pocket, self._variants[0]) for pocket in pockets)
        return min((due for due in dues if due is not None), default=None)
