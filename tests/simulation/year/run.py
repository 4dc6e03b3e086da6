"""Simulates a year in a database and compares its documents with the ledger."""

from datetime import date

from tests.simulation.year.comparing import Comparison
from tests.simulation.year.living import LivedYear, open_before


async def live_and_compare(dsn, *, customers, first_day, year, seed, progress=lambda _: None):
    """Live from a day until the tax forms of a year are made; return the comparison.

    On the last day of the year everything is closed: bills that are due then pay in the next.
    """
    closed_on = date(year, 12, 31)
    async with open_before(dsn, first_day, closed_on) as desk:
        lived = LivedYear(desk.bank, seed=seed, customers=customers, first_day=first_day, year=year)
        await lived.found()
        async for day in lived.days():
            if day.day == 1:
                progress(f"{day:%B %Y} begins: {lived.steps:,} steps of {customers} customers")
        comparison = await Comparison.begin(desk, first_day=first_day, year=year, closed_on=closed_on)
        async for part in comparison.parts():
            progress(f"{part.replace('_', ' ')} compared")
        return comparison
