"""What a batch wrote goes into the database in one call or by COPY, and is the same either way."""

import pytest
from tests.ledger.engine.test_engine import counts, payment
from tests.support.whole_bank import expect_clean

from billfold.ledger.engine import write_batch as write
from billfold.ledger.engine.write_batch import LEDGER_BOOK_TABLES
from billfold.platform.database.rows import Row

_NOT_ROWS = 3
"""The heads, bases and counters that `ledger_book` takes before the rows."""
_TAKEN = """
SELECT string_agg(a.attname, ',' ORDER BY a.attnum)
  FROM pg_proc p CROSS JOIN unnest(p.proargtypes) WITH ORDINALITY AS taken(type, nth)
  JOIN pg_type t ON t.oid = taken.type JOIN pg_type e ON e.oid = t.typelem
  JOIN pg_attribute a ON a.attrelid = e.typrelid AND a.attnum > 0 AND NOT a.attisdropped
 WHERE p.proname = 'ledger_book' GROUP BY taken.nth ORDER BY taken.nth
"""


async def test_rows_are_taken_by_the_columns_in_which_they_are_copied(conn):
    taken = [row[0] for row in await conn.fetch(_TAKEN)][_NOT_ROWS:]
    columns = {row.table: ",".join(row.__struct_fields__) for row in Row.__subclasses__()}
    assert taken == [columns[table] for table in LEDGER_BOOK_TABLES]


async def left_by(bank, command):
    before = await counts(bank)
    answer = await bank.engine.submit(command)
    assert answer.outcome["status"] == "COMPLETED"
    return {table: count - before[table] for table, count in (await counts(bank)).items()}


@pytest.mark.parametrize("few", [0, 60])
async def test_a_payment_leaves_proven_rows_however_many_books_are_few(bank, new_holder, monkeypatch, few):
    payer, payee = await new_holder(), await new_holder(weeks=26)
    await payer.deposit(50_000_00)
    monkeypatch.setattr(write, "SINGLE_CALL_MAX_BOOKS", few)

    left = await left_by(bank, payment(payer, payee, 1_000_00))

    assert {table: count for table, count in left.items() if count} == {
        "account": 5,
        "journal_entry": 2,
        "posting": 8,
        "trade": 2,
        "transaction": 2,
        "event": 2,
        "command": 1,
        "chain_entry": 2,
        "transfer": 1,
        "directory": 1,
    }
    await expect_clean(bank)
