"""Reads of Pockets: holdings, ordered lists, and the indexes they use."""

from typing import Any
from uuid import UUID

import pytest
from tests.support.cases import in_one_bank
from tests.support.whole_bank import PARTNER

from billfold.accounts.pockets import store
from billfold.accounts.pockets.commands import OpenPocket, UpdatePocket
from billfold.accounts.pockets.store import POCKETS_OF_CUSTOMERS, POCKETS_OF_PARTNER
from billfold.platform import ids
from billfold.platform.errors import NotFound


@pytest.fixture
async def opened_pockets(bank, new_holder):
    """Four Pockets of three customers, oldest first; the second Pocket of the first customer is closed."""
    first, second, third = [await new_holder() for _ in range(3)]
    made = [(each.customer_id, each.pocket_id) for each in (first, second, third)]
    command: dict[str, Any] = {"caller": "test", "customers": (first.customer_id,)}
    outcome = await bank.engine.submit(
        OpenPocket(key=ids.new(), partner_id=PARTNER, name="Closed", deposit_weeks=4, reinvestment_weeks=4, **command)
    )
    closed = UUID(outcome.outcome["pocket_id"])
    await bank.engine.submit(UpdatePocket(key=ids.new(), pocket_id=closed, close_for="INACTIVITY", **command))
    return [*made, (first.customer_id, closed)]


def keys(rows):
    return [(row.customer_id, row.pocket_id) for row in rows]


async def test_a_pocket_is_read_with_its_cash_and_lots(bank, new_holder):
    holder = await new_holder()
    await holder.deposit(123_456_78)
    row = await store.get_pocket(bank.pool, holder.customer_id, holder.pocket_id)
    assert (row.inflow, row.outflow, row.fees) == (123_456_78, 0, 0)
    assert row.cash + row.earnings_basis == 123_456_78
    assert sum(row.positions().values()) == sum(row.lot_units) > 0
    with pytest.raises(NotFound):
        await store.get_pocket(bank.pool, ids.new(), holder.pocket_id)


async def test_closed_pockets_are_excluded_from_the_list_of_open_pockets(bank, opened_pockets):
    everyone = await store.list_open(bank.pool, PARTNER, None, limit=10)
    assert sorted(keys(everyone)) == sorted(opened_pockets[:3])
    assert keys(await store.list_open(bank.pool, PARTNER, opened_pockets[0][0], limit=10)) == opened_pockets[:1]
    assert len(await store.list_open(bank.pool, PARTNER, None, limit=2)) == 2
    assert sorted(await store.list_ids(bank.pool, opened_pockets[0][0])) == sorted(
        [opened_pockets[0][1], opened_pockets[3][1]]
    )
    assert sorted(keys(await store.list_by_id(bank.pool, opened_pockets[1:]))) == sorted(opened_pockets[1:])


async def test_a_listed_pocket_that_another_node_has_not_committed_yet_is_awaited(bank, opened_pockets, monkeypatch):
    waited: list[object] = []
    by_id = store.list_by_id

    async def listed(conn, wanted):
        return await by_id(conn, wanted) if waited else []

    async def wait(conn):
        waited.append(conn)

    monkeypatch.setattr(store, "deserialize_book", lambda _: None)
    monkeypatch.setattr(store, "list_by_id", listed)
    monkeypatch.setattr(store, "await_prepared", wait)
    found = await POCKETS_OF_PARTNER.rows(bank.pool, PARTNER, None, limit=10)
    assert sorted(keys(found)) == sorted(opened_pockets)
    assert len(waited) == 1


async def test_lists_are_the_same_by_books_and_by_rows(bank, new_holder, opened_pockets):
    holder = await new_holder()
    await holder.deposit(123_456_78)
    customers = [*{customer_id for customer_id, _ in opened_pockets}, holder.customer_id]

    async def read():
        listed = await POCKETS_OF_PARTNER.rows(bank.pool, PARTNER, None, limit=10)
        assert listed == await POCKETS_OF_CUSTOMERS.rows(bank.pool, customers, None, None, limit=10)
        return listed

    by_books = await read()
    assert len(by_books) == 5
    await bank.pool.execute("UPDATE ledger_head SET serialized_book = NULL WHERE customer_id = $1", customers[0])
    assert await read() == by_books
    await bank.pool.execute("UPDATE ledger_head SET serialized_book = '\\x00'::bytea || serialized_book")
    assert await read() == by_books == (await store.list_by_id(bank.pool, keys(by_books)))[::-1]


@pytest.mark.one_server
@in_one_bank(
    ("sql", "arguments", "indexes"),
    [
        (store._GET, (PARTNER, PARTNER), ("pocket_pkey", "account_live")),
        (store._BY_ID, ([PARTNER], [PARTNER]), ("pocket_pkey", "account_live")),
        (POCKETS_OF_PARTNER.statements[True], (PARTNER, None, None, None, 30), ("pocket_partner",)),
        (POCKETS_OF_CUSTOMERS.statements[True], ([PARTNER], None, None, None, None, 30), ("pocket_pkey",)),
    ],
)
async def test_pocket_reads_use_an_index_for_any_number_of_pockets(conn, sql, arguments, indexes):
    await conn.execute("SET enable_seqscan = off")
    # A plan made once for all arguments, as a prepared statement gets after a while.
    await conn.execute("SET plan_cache_mode = force_generic_plan")
    plan = await (await conn.prepare(sql)).explain(*arguments)
    assert all(index in str(plan) for index in indexes)
