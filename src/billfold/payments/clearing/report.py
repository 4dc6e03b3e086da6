"""What the rails hold, the payments that explain it, and what does not settle when it should."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import NamedTuple

from billfold.ledger.bank import Bank
from billfold.ledger.scheduler import bank_customer_id
from billfold.payments.clearing.store import DATE_MAX, EVER, SettlementPeriod, balances, list_cleared, list_open
from billfold.payments.clearing.types import ClearingTotals, OpenPayment
from billfold.platform.dates import et_instant

_ONE_MICROSECOND, _ONE_DAY = timedelta(microseconds=1), timedelta(days=1)
RECENT = timedelta(days=7)


class ClearingReport(NamedTuple):
    """The clearing accounts, the settlement dates that are open, and the payments in transit."""

    held: dict[str, int]
    dates: list[ClearingTotals]
    payments: list[OpenPayment]

    def only(self, rail: str | None) -> ClearingReport:
        """Return the report of one rail, or of all."""
        if rail is None:
            return self
        held = {kind: cents for kind, cents in self.held.items() if kind == f"rail:{rail.lower()}"}
        dates = [each for each in self.dates if each.rail == rail]
        return ClearingReport(held, dates, [each for each in self.payments if each.rail == rail])

    def explained(self, rail: str) -> int:
        """Cents that payments in transit leave on this rail."""
        return sum(d.unsettled_out - d.unsettled_in for d in self.dates if d.rail == rail)

    def unexplained(self, rail: str) -> int:
        """Cents on the accounts of this rail that no payment in transit explains."""
        return self.held.get(f"rail:{rail.lower()}", 0) - self.explained(rail)


_OPEN_DAY = "SELECT business_date FROM ledger_head WHERE customer_id = $1"


class InTransit(NamedTuple):
    """What is not settled of the last days and of those to come: dates that are over are breaks."""

    open_day: date
    dates: list[ClearingTotals]
    payments: list[OpenPayment]

    @property
    def breaks(self) -> list[tuple[ClearingTotals, int]]:
        """Dates that are over and not settled, with how many days ago they were, the oldest first."""
        late = [each for each in self.dates if each.settles_on < self.open_day]
        return [(each, (self.open_day - each.settles_on).days) for each in sorted(late, key=lambda e: e.settles_on)]

    @property
    def coming(self) -> list[tuple[ClearingTotals, int]]:
        """What settles today and later; none of it is late."""
        return [(each, 0) for each in self.dates if each.settles_on >= self.open_day]


async def read_in_transit(bank: Bank, *, limit: int) -> InTransit:
    """Return what is not settled since a week ago: what `clearing_report` says of all days, at the cost of few."""
    bank_id = bank_customer_id(bank.seed)
    async with bank.pool.acquire() as conn, conn.transaction(isolation="repeatable_read", readonly=True):
        open_day = await conn.fetchval(_OPEN_DAY, bank_id)
        first = open_day - RECENT
        recent = SettlementPeriod(first, et_instant(first, 0), DATE_MAX, ends=et_instant(DATE_MAX, 0))
        since = recent._replace(first=open_day, begins=_closed_until(bank, open_day))
        dates = await list_cleared(conn, bank_id, recent)
        return InTransit(open_day, dates, await list_open(conn, bank_id, since, limit=limit))


async def clearing_report(bank: Bank) -> ClearingReport:
    """Return the balances of the rails and the payments that explain them, at one moment."""
    bank_id = bank_customer_id(bank.seed)
    async with bank.pool.acquire() as conn, conn.transaction(isolation="repeatable_read"):
        dates = await list_cleared(conn, bank_id, EVER)
        open_day = await conn.fetchval(_OPEN_DAY, bank_id)
        since = EVER._replace(first=open_day, begins=_closed_until(bank, open_day))
        return ClearingReport(await balances(conn), dates, await list_open(conn, bank_id, since))


def _closed_until(bank: Bank, open_day: date) -> datetime:
    """The moment after the close of the business day before the open one."""
    day = open_day - _ONE_DAY
    while not bank.calendars.is_settlement_day(day):
        day -= _ONE_DAY
    return bank.calendars.closes_at(day) + _ONE_MICROSECOND
