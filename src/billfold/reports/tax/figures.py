"""The figures of a customer's tax year, read from the ledger."""

from typing import NamedTuple
from uuid import UUID

from billfold.ledger.bank import Bank
from billfold.reports.entries.reader import current_position
from billfold.reports.entries.store import last_entry_before
from billfold.reports.entries.types import LedgerPosition
from billfold.reports.tax import store
from billfold.reports.tax.rules import LotReplay, first_purchase, is_relevant, tax_years, year_bounds
from billfold.reports.tax.types import Disposal, TaxStatus, TaxYear


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
        after = await last_entry_before(conn, customer_id, first_purchase(year))
        stream = store.stream_movements(conn, customer_id, after, position.entry_no)
        replay, disposals = LotReplay(lambda cusip: bank.market.bill(cusip).maturity), list[Disposal]()
        async for each in stream:
            # Of a bill that was gone before the year began the lots may have been bought before the stream does.
            if is_relevant(bank.market.bill(each.cusip).maturity, year):
                disposal = replay.play(each)
                disposals += [disposal] if disposal is not None else []
    return TaxReading(status, tax_years(year, disposals, status), position)
