"""Statements of every account of a bank in which a bit of everything has happened."""

from datetime import date, timedelta
from uuid import uuid4

import pytest
from tests.support.whole_bank import close_bank, open_bank

from billfold.accounts.pockets import store as pocket_store
from billfold.accounts.pockets.schemas import valuation
from billfold.reports.entries.reader import Wanted, list_entries, read_statement
from billfold.reports.entries.types import AccountType, EntryKind

DAY = timedelta(days=1)
FIRST, LAST = date(2025, 6, 1), date(2025, 8, 6)
KINDS = {
    AccountType.BANK: {*map(EntryKind, ("ACH", "CREDIT", "FEE", "GENERIC", "ONUS", "SWEEP", "WIRE"))},
    AccountType.BROKERAGE: {*map(EntryKind, ("ADDITION", "AUM_FEE", "GAIN_LOSS", "SUBTRACTION"))},
}
_TOTALS = """
SELECT coalesce(sum(amount) FILTER (WHERE direction = 'CREDIT'), 0), coalesce(sum(amount), 0)
  FROM transaction WHERE pocket_id = $1 AND (swept OR type <> 'CARD')
"""


@pytest.fixture
async def bank(pg_server, lived_bank):
    dsn = await pg_server.create_database(f"entries_{uuid4().hex}", template=lived_bank)
    opened = await open_bank(dsn)
    yield opened
    await close_bank(opened)


async def statement_of(bank, key, account, first, last=None):
    wanted = Wanted(key[0], key[1], account, first, last or first, await bank.now())
    statement = await read_statement(bank, wanted)
    return statement, [entry async for page in list_entries(bank, statement) for entry in page]


@pytest.mark.parametrize("account", AccountType)
async def test_every_account_balances_and_each_day_opens_as_the_last_closed(bank, account):
    now = await bank.now()
    keys = await bank.pool.fetch("SELECT customer_id, pocket_id FROM pocket")
    kinds = set()
    for key in keys:
        daily, closed_at = [], 0
        for day in (FIRST + n * DAY for n in range((LAST - FIRST).days)):
            statement, entries = await statement_of(bank, key, account, day)
            assert statement.opening.value == closed_at
            assert statement.opening.value + sum(each.amount for each in entries) == statement.closing.value
            closed_at = statement.closing.value
            daily += entries
        row = await pocket_store.get_pocket(bank.pool, *key)
        whole, entries = await statement_of(bank, key, account, FIRST, LAST - DAY)
        paid = [each for each in entries if each.kind != EntryKind.GAIN_LOSS]
        assert paid == [each for each in daily if each.kind != EntryKind.GAIN_LOSS]
        assert sum(each.amount for each in entries) == sum(each.amount for each in daily) == whole.totals.net
        if account == AccountType.BROKERAGE:
            statement, _ = await statement_of(bank, key, account, LAST - DAY)
            assert statement.closing.value == valuation(row, bank, now).total_value
        else:
            credited, moved = await bank.pool.fetchrow(_TOTALS, key[1])
            assert (whole.closing.value, whole.totals.credited) == (0, moved)
            assert credited == sum(e.amount for e in entries if e.amount > 0 and e.kind != EntryKind.SWEEP)
        kinds |= {each.kind for each in entries}
    assert kinds == KINDS[account]
