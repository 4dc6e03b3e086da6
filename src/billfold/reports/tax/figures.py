"""The figures of a customer's tax year, read from the ledger."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import UUID

from billfold.reports.entries.reader import current_position
from billfold.reports.entries.store import last_entry_before
from billfold.reports.tax import store
from billfold.reports.tax.rules import LotReplay, tax_years, year_bounds

if TYPE_CHECKING:
    from billfold.ledger.bank import Bank
    from billfold.reports.entries.types import LedgerPosition
    from billfold.reports.tax.types import TaxStatus, TaxYear

_HOLIDAYS: Final = timedelta(days=30)


class TaxReading(NamedTuple):
    """A customer's calendar year: its status, each Pocket with sales or maturities, and how far the log was read."""

    status: TaxStatus
    years: list[TaxYear]
    position: LedgerPosition


async def read_tax_years(bank: Bank, customer_id: UUID, year: int) -> TaxReading:
    """Return what a customer's Pockets have to report for a calendar year. What was due by its end is done first."""
    ends_at = year_bounds(year)[1]
    position = await current_position(bank, customer_id, ends_at)
    async with bank.pool.acquire() as conn, conn.transaction(isolation="repeatable_read", readonly=True):
        status = await store.get_tax_status(conn, customer_id)
        # No bill runs longer than 52 weeks: what is held in a year was bought in it or the year before, or in the
        # last days of the one before that, for a bill due on a holiday.
        after = await last_entry_before(conn, customer_id, year_bounds(year - 1)[0] - _HOLIDAYS)
        stream = store.stream_movements(conn, customer_id, after, position.entry_no)
        replay = LotReplay(lambda cusip: bank.market.bill(cusip).maturity)
        disposals = [disposal async for each in stream if (disposal := replay.play(each)) is not None]
    return TaxReading(status, tax_years(year, disposals, status), position)
