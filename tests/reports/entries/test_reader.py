"""Statements of every account of a bank in which a bit of everything has happened, in every format."""

from datetime import date
from uuid import uuid4

import pytest
from tests.reports.formats.readers import assert_same, write_and_read
from tests.support.statements import assert_chained, periods_between, statement_of
from tests.support.whole_bank import close_bank, open_bank

from billfold.accounts.pockets import store
from billfold.accounts.pockets.schemas import valuation
from billfold.reports.entries.reader import StatementRange
from billfold.reports.entries.types import AccountType, EntryKind
from billfold.reports.requests.renderers import WRITERS, read_file

PERIODS = [
    *periods_between(date(2025, 6, 1), date(2025, 6, 14)),
    *periods_between(date(2025, 6, 15), date(2025, 8, 5), days=7),
]
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


@pytest.mark.parametrize("account", AccountType)
async def test_a_quarter_balances_in_every_statement_format_by_every_reader(bank, account):
    now = await bank.now()
    keys = await bank.pool.fetch("SELECT customer_id, pocket_id FROM pocket")
    listed = []
    for key in keys:
        statement, entries = await assert_chained(bank, key, account, PERIODS)
        if account == AccountType.BROKERAGE:
            row = await store.get_pocket(bank.pool, *key)
            assert statement.closing.value == valuation(row, bank, now).total_value
        else:
            credited, moved = await bank.pool.fetchrow(_TOTALS, key["pocket_id"])
            assert (statement.closing.value, statement.totals.credited) == (0, moved)
            assert credited == sum(e.amount for e in entries if e.amount > 0 and e.kind != EntryKind.SWEEP)
        listed.append(entries)
    assert {each.kind for entries in listed for each in entries} == KINDS[account]
    days = PERIODS[0][0], PERIODS[-1][1]
    file = await read_file(
        bank, [StatementRange(key["customer_id"], key["pocket_id"], account, *days, now) for key in keys]
    )
    for name in WRITERS:
        _, found = await write_and_read(name, file)
        assert_same(name, file, found, [[each.amount for each in entries] for entries in listed])


async def test_a_statement_reproduced_at_its_position_excludes_later_entries_of_the_same_instant(bank, new_holder):
    holder = await new_holder()
    today = (await bank.now()).date()
    key = holder.customer_id, holder.pocket_id
    await holder.deposit(1_000_00)
    first, entries = await statement_of(bank, key, AccountType.BROKERAGE, (today, today))
    await holder.deposit(2_000_00)
    again, listed = await statement_of(bank, key, AccountType.BROKERAGE, (today, today), position=first.position)
    assert (again, listed) == (first, entries)
    later, _ = await statement_of(bank, key, AccountType.BROKERAGE, (today, today))
    assert later.totals.credited > again.totals.credited
