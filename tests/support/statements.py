"""Statements of a Pocket over adjoining periods, which must balance one by one and together."""

from datetime import timedelta

from billfold.reports.entries.reader import StatementRange, list_entries, read_statement
from billfold.reports.entries.types import EntryKind

DAY = timedelta(days=1)


def periods_between(first, last, *, days=1):
    """Return the first and the last day of adjoining periods of so many days."""
    return [(first + n * DAY, min(first + (n + days - 1) * DAY, last)) for n in range(0, (last - first).days + 1, days)]


async def statement_of(bank, key, account, period, *, position=None):
    """Return a statement and its entries."""
    customer_id, pocket_id = key
    first, last = period
    wanted = StatementRange(customer_id, pocket_id, account, first, last, await bank.now(), position)
    statement = await read_statement(bank, wanted)
    return statement, [entry async for page in list_entries(bank, statement) for entry in page]


async def assert_chained(bank, key, account, periods):
    """Each statement balances and opens as the last closed, and the one of all periods has their entries."""
    closed_at, together = 0, []
    for period in periods:
        statement, entries = await statement_of(bank, key, account, period)
        assert statement.opening.value == closed_at
        assert closed_at + sum(each.amount for each in entries) == statement.closing.value
        closed_at = statement.closing.value
        together += entries
    statement, entries = await statement_of(bank, key, account, (periods[0][0], periods[-1][1]))
    assert paid(entries) == paid(together)
    assert sum(each.amount for each in entries) == sum(each.amount for each in together) == statement.totals.net
    return statement, entries


def paid(entries):
    """Return the entries that are no gains."""
    return [each for each in entries if each.kind != EntryKind.GAIN_LOSS]
