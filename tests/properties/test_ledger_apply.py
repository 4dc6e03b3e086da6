"""The database believes no planner: what must not be is refused by `ledger_apply`.

A batch that is right is accepted; every way of making it wrong is tried by name, and then
batches are drawn at random and compared with a ledger of a dozen lines.
"""

import asyncio
from collections import defaultdict
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID

import asyncpg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.cases import in_one_bank

from billfold.ledger.book.postings import StoredEntry
from billfold.ledger.types import DERIVED_BALANCES

ANNA, BERT = UUID(int=1 << 100), UUID(int=2 << 100)
POCKET = UUID(int=77)
NOW = datetime(2025, 6, 2, 13, tzinfo=UTC)
DAY = date(2025, 6, 2)
RAIL, BANK, CASH, STREET, STREET_BILLS, LOT, OWED = range(1, 8)
CUSIP = "912797AA1"
ACCOUNTS = [
    (RAIL, "rail:wire", None, "USD", None),
    (BANK, "bank", POCKET, "USD", None),
    (CASH, "cash", POCKET, "USD", None),
    (STREET, "street", None, "USD", None),
    (STREET_BILLS, "street", None, CUSIP, None),
    (LOT, "lot", POCKET, CUSIP, DAY),
    (OWED, "owed", POCKET, "USD", None),
]
APPLY = "SELECT ledger_apply($1, $2, $3, '{}', '{}')"

FOLDED = """
SELECT customer_id, account_no, sum(moved)::bigint
  FROM (SELECT customer_id, debit AS account_no, -amount AS moved FROM posting WHERE phase = 0
         UNION ALL
        SELECT customer_id, credit, amount FROM posting WHERE phase = 0) side
 GROUP BY customer_id, account_no
"""


class Batch:
    """A batch for Anna and Bert; every part of it can be made wrong before it is applied."""

    def __init__(self):
        self.journals = []
        self.legs = []
        self.heads: dict[UUID, list[Any]] = {
            ANNA: [0, 0, 0, 0, 0, 7, NOW, DAY, None, b"chain", None],
            BERT: [0, 0, 0, 0, 0, 7, NOW, DAY, None, b"chain", None],
        }
        self.bases = []
        self.announced = None

    def journal(self, customer, *legs):
        head = self.heads[customer]
        head[2] += 1
        number = head[2]
        self.journals.append([customer, number, "test", UUID(int=5), NOW, DAY, DAY, DAY, None])
        for posting_no, (debit, credit, asset, amount) in enumerate(legs, start=1):
            self.legs.append([customer, number, posting_no, debit, credit, asset, amount, 0])
        return self

    async def apply(self, conn):
        await self.copy(conn)
        heads = [(customer, *head) for customer, head in self.heads.items()]
        await conn.fetchval(APPLY, self.announced or len(self.journals), heads, self.bases)

    async def copy(self, conn):
        packed = {
            number: [
                (amount, debit, credit, phase, asset)
                for owner, entry_no, _, debit, credit, asset, amount, phase in self.legs
                if (owner, entry_no) == number
            ]
            for number in {(owner, entry_no) for owner, entry_no, *_ in self.journals}
        }
        entries = [(*entry, packed[entry[0], entry[1]]) for entry in self.journals]
        await conn.copy_records_to_table("journal_entry", records=entries, columns=StoredEntry.__struct_fields__)


def deposit(cents=1_000_00, units=10, cost=990_00):
    """A deposit for Anna that buys bills, and one for Bert that stays cash: a good batch."""
    batch = Batch()
    batch.journal(
        ANNA,
        (RAIL, BANK, "USD", cents),
        (BANK, CASH, "USD", cents),
        (CASH, STREET, "USD", cost),
        (STREET_BILLS, LOT, CUSIP, units),
    )
    batch.journal(BERT, (RAIL, BANK, "USD", cents), (BANK, CASH, "USD", cents))
    batch.bases.append((ANNA, LOT, CUSIP, cost, cost, True))
    return batch


@pytest.fixture
async def ledger(conn):
    """Two customers with one pocket each and nothing booked."""
    return await begin(conn)


async def begin(conn):
    await conn.execute(
        "INSERT INTO ledger_head (customer_id, account_no, booked_at, business_date)"
        " SELECT id, 7, $2, $3 FROM unnest($1::uuid[]) AS id",
        [ANNA, BERT],
        NOW,
        DAY,
    )
    await conn.copy_records_to_table(
        "account",
        records=[(customer, *account) for customer in (ANNA, BERT) for account in ACCOUNTS],
        columns=("customer_id", "account_no", "kind", "pocket_id", "asset", "acquired_on"),
    )
    return conn


async def apply(conn, batch):
    """Apply it and take it back; return the balances it led to, or None when it was refused."""
    transaction = conn.transaction()
    await transaction.start()
    try:
        await batch.apply(conn)
        rows = await conn.fetch("SELECT customer_id, account_no, credits - debits FROM account")
        folded = await conn.fetch(FOLDED)
    except asyncpg.PostgresError:
        return None
    else:
        balances = {(customer, number): balance for customer, number, balance in folded}
        for customer, number, kept in rows:
            assert kept == (0 if KINDS[number] in DERIVED_BALANCES else balances.setdefault((customer, number), 0))
        return {(customer, number): balances.get((customer, number), 0) for customer, number, _ in rows}
    finally:
        await transaction.rollback()


async def test_a_valid_ledger_batch_is_accepted(ledger):
    balances = await apply(ledger, deposit())
    assert balances is not None
    assert (balances[ANNA, CASH], balances[ANNA, LOT], balances[BERT, CASH]) == (1000, 10, 100000)


def set_part(name, row, column, *, to):
    """Set one value of a part of the batch."""
    return lambda batch: getattr(batch, name)[row].__setitem__(column, to)


def alter_leg(index, position, value):
    return set_part("legs", index, position, to=value)


def alter_head(position, value):
    return set_part("heads", ANNA, position, to=value)


def alter_journal(position, value):
    return set_part("journals", 0, position, to=value)


def add_leg(*leg):
    return lambda batch: batch.legs.append(list(leg))


def drop_leg(index):
    return lambda batch: batch.legs.pop(index)


def announce(count):
    return lambda batch: setattr(batch, "announced", count)


def rebase(*bases):
    return lambda batch: setattr(batch, "bases", list(bases))


WRONG = {
    "a leg of nothing": alter_leg(0, 6, 0),
    "a leg of less than nothing": alter_leg(0, 6, -5),
    "a leg from an account to itself": alter_leg(0, 3, BANK),
    "a leg of another asset than its accounts": alter_leg(0, 5, CUSIP),
    "a leg between two assets": alter_leg(3, 4, CASH),
    "a leg to an account nobody has": alter_leg(1, 4, 99),
    "a leg from an account nobody has": alter_leg(1, 3, 99),
    "an unknown phase": alter_leg(0, 7, 3),
    "money left on the bank account": drop_leg(1),
    "money from an empty bank account": drop_leg(0),
    "cash that is not there": alter_leg(2, 6, 1_000_01),
    "bills that are not there": alter_leg(3, 3, LOT),
    "a leg of no amount": alter_leg(0, 6, None),
    "a leg of no asset": alter_leg(0, 5, None),
    "a leg from no account": alter_leg(0, 3, None),
    "what a customer owes us turned round": alter_leg(1, 4, OWED),
    "money put back where it came from": alter_leg(0, 3, CASH),
    "a reservation of more than there is": add_leg(BERT, 1, 3, CASH, STREET, "USD", 2_000_00, 1),
    "a release of what was not reserved": add_leg(BERT, 1, 3, CASH, STREET, "USD", 1, 2),
    "a stale version": alter_head(0, 5),
    "a stale journal number": alter_head(1, 1),
    "a stale event number": alter_head(3, 1),
    "a gap after the last journal": alter_head(2, 2),
    "a head behind its journals": alter_head(2, 0),
    "event numbers that go back": alter_head(4, -1),
    "account numbers that go back": alter_head(5, 6),
    "a time before the last booking": alter_head(6, NOW - timedelta(seconds=1)),
    "a date before the last one": alter_head(7, DAY - timedelta(days=1)),
    "a journal number left out": alter_journal(1, 2),
    "a journal of another customer": alter_journal(0, UUID(int=9)),
    "more journals than were copied": announce(3),
    "fewer journals than were copied": announce(1),
    "a cost below zero": rebase((ANNA, LOT, CUSIP, -1, 990_00, True)),
    "an empty lot that cost something": rebase((ANNA, LOT, CUSIP, 1, 1, True), (BERT, LOT, CUSIP, 1, 1, True)),
    "bills in a lot that was put away": rebase((ANNA, LOT, CUSIP, 990_00, 990_00, False)),
    "a reservation on an account without a balance": add_leg(BERT, 1, 3, BANK, STREET, "USD", 1, 1),
    "a cost of an account without a balance": rebase((ANNA, STREET, "USD", 5, 5, True)),
    "a cost of cash": rebase((ANNA, CASH, "USD", 5, 5, True)),
    "a cost of a lot nobody has": rebase((ANNA, 99, CUSIP, 5, 5, True)),
    "a cost under another bill": rebase((ANNA, LOT, "912797BB2", 5, 5, True)),
}


@in_one_bank("wrong", WRONG)
async def test_an_invalid_ledger_batch_is_refused(ledger, wrong):
    batch = deposit()
    WRONG[wrong](batch)
    assert await apply(ledger, batch) is None


async def test_a_ledger_batch_with_a_duplicate_head_is_refused(ledger):
    batch = deposit()
    heads = [(ANNA, *batch.heads[ANNA])] * 2 + [(BERT, *batch.heads[BERT])]
    with pytest.raises(asyncpg.PostgresError):
        async with ledger.transaction():
            await batch.copy(ledger)
            await ledger.fetchval(APPLY, 2, heads, batch.bases)


def test_random_batches_are_accepted_exactly_when_the_plain_ledger_accepts_them(pg_server, database_template):
    """Hypothesis wants a plain function: it runs the whole examination on one connection."""
    numbers = st.sampled_from((*range(1, 8), 99))
    assets = st.sampled_from(("USD", "USD", "USD", CUSIP))
    leg = st.tuples(numbers, numbers, assets, st.integers(-1, 500))
    journals = st.lists(
        st.tuples(st.sampled_from((ANNA, BERT)), st.lists(leg, min_size=1, max_size=4)), min_size=1, max_size=3
    )

    async def examine():
        dsn = await pg_server.create_database("hostile", template=database_template)
        conn = await asyncpg.connect(dsn)
        return await begin(conn)

    runner = asyncio.Runner()
    conn = runner.run(examine())

    @settings(max_examples=400, deadline=None, derandomize=True, database=None)
    @given(journals)
    def examined(drawn):
        batch = Batch()
        for customer, legs in drawn:
            batch.journal(customer, *sound(legs))
        assert runner.run(apply(conn, batch)) == plainly(batch)

    examined()
    runner.run(conn.close())
    runner.close()


def sound(legs):
    """Give most random postings the right asset; few batches would otherwise reach the relevant rules."""
    return [
        (debit, credit, ACCOUNT_ASSETS.get(debit, asset) if amount % 3 else asset, amount)
        for debit, credit, asset, amount in legs
    ]


ACCOUNT_ASSETS = {number: asset for number, _, _, asset, _ in ACCOUNTS}
KINDS = {number: kind for number, kind, _, _, _ in ACCOUNTS}


def plainly(batch):
    """Apply the batch to an in-memory ledger; return None if a rule refuses it."""
    balances: defaultdict[tuple[UUID, int], int] = defaultdict(int)
    for customer, _, _, debit, credit, asset, amount, _ in batch.legs:
        if amount <= 0 or debit == credit:
            return None
        if {ACCOUNT_ASSETS.get(debit), ACCOUNT_ASSETS.get(credit)} != {asset}:
            return None
        balances[customer, debit] -= amount
        balances[customer, credit] += amount
    for (_, number), balance in balances.items():
        kind = KINDS[number]
        if (
            (kind == "bank" and balance)
            or (kind in {"cash", "lot"} and balance < 0)
            or (kind == "owed" and balance > 0)
        ):
            return None
    return {(customer, number): balances[customer, number] for customer in (ANNA, BERT) for number in KINDS}
