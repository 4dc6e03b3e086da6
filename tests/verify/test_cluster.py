"""A distributed bank is verified where its rows lie, at one cut of all nodes, while transfers go on."""

import asyncio
import os
from itertools import pairwise, product
from urllib.parse import urlsplit

import asyncpg
import pytest
from tests.support.databases import as_application
from tests.support.whole_bank import VAULT, EngineCommands, Place
from tests.verify.test_damage import CHANGES, COLUMNS, TABLES, assert_finding, rolled_back

from billfold.platform.database.business_clock import read_clock
from billfold.platform.database.distribution import one_snapshot
from billfold.platform.database.pool import create_pool
from billfold.platform.errors import Unavailable
from billfold.verify.runner import verify_bank

pytestmark = pytest.mark.skipif("BILLFOLD_TEST_CITUS_URL" not in os.environ, reason="no Citus cluster is named")
DAMAGED = {
    "ledger_head": "version",
    "account": "tax_basis",
    "journal_entry": "settles_on",
    "trade": "notional",
    "command": "outcome",
    "chain_entry": "hash",
    "pocket": "realised",
    "portal": "account_number",
}
NODE = """
SELECT groupid FROM pg_dist_placement WHERE shardid = get_shard_id_for_distribution_column('ledger_head', $1::uuid)
"""

MOVED = """
SELECT coalesce(sum(amount), 0)::bigint FROM transaction WHERE customer_id = $1 AND direction = $2 AND type = 'ON_US'
"""
DECIDED = "INSERT INTO work_claim (name, owner_id, until) VALUES ('decided', gen_random_uuid(), now())"
MOVE = """
SELECT citus_move_shard_placement(shardid, p.nodename, p.nodeport, n.nodename, n.nodeport, 'block_writes')
  FROM pg_dist_shard_placement p, pg_dist_node n
 WHERE shardid = get_shard_id_for_distribution_column('ledger_head', '{}'::uuid)
   AND n.groupid > 0 AND n.nodeport <> p.nodeport LIMIT 1
"""
PREPARED = "SELECT gid, groupid FROM pg_dist_transaction WHERE gid <> ALL($1)"


async def verified(dsn):
    """The report of processes, each with its own connection."""
    dsn = as_application(dsn)
    async with await create_pool(dsn, max_size=1) as pool, pool.acquire() as conn:
        return await verify_bank(conn, vault=VAULT, dsn=dsn)


async def test_every_kind_of_wire_and_ach_entry_is_verified(small_rails_bank):
    report = await verified(small_rails_bank)
    assert report.is_clean, report.findings
    assert min(report.checked[table] for table in ("wire", "ach_entry", "rail_file", "posting")) > 1


async def test_a_batch_is_prepared_on_each_node_that_it_writes_to(bank, bank_dsn):
    teller = EngineCommands(bank, "transfers")
    places = [await teller.new_pocket(await teller.new_customer(f"Customer {n}")) for n in range(6)]
    conn = await asyncpg.connect(bank_dsn)
    for place, there in pairwise(places):
        before = [gid for gid, _ in await conn.fetch(PREPARED, [])]
        await teller.receive_money(place, 1_000_00)
        await teller.transfer(place, there, 1_00)
        nodes = {await conn.fetchval(NODE, each.customer) for each in (place, there)}
        assert nodes <= {node for _, node in await conn.fetch(PREPARED, before)}, "one phase loses one half"
    await conn.close()


async def test_transfers_that_go_on_are_seen_whole_and_a_damaged_row_is_named_on_each_node(bank, bank_dsn):
    teller = EngineCommands(bank, "transfers")
    places = [await teller.new_pocket(await teller.new_customer(f"Customer {n}")) for n in range(8)]
    for place in places:
        await teller.receive_money(place, 1_000_000_00)
    is_over, booked = asyncio.Event(), 0

    async def pay(payer, payee):
        nonlocal booked
        while not is_over.is_set():
            await teller.transfer(payer, payee, 1_00)
            booked += 1

    paying = [asyncio.create_task(pay(*each)) for each in zip(places, places[1:] + places[:1], strict=True)]
    seen = []
    for _ in range(3):
        report = await verified(bank_dsn)
        assert report.is_clean, report.findings[:5]
        seen.append((report.checked["transfer"], booked))
    is_over.set()
    await asyncio.gather(*paying)
    assert 0 < seen[0][0] < seen[0][1] < seen[2][0], "transfers went on meanwhile"

    conn = await asyncpg.connect(bank_dsn)
    by_node = {await conn.fetchval(NODE, place.customer): place.customer for place in places}
    assert len(by_node) > 1
    for table, customer in product(DAMAGED, by_node.values()):
        async with rolled_back(conn):
            row = await damaged(conn, table, customer)
            assert_finding(await verify_bank(conn), table, row)
    row = await damaged(conn, "trade", customer)
    assert_finding(await verified(bank_dsn), "trade", row)
    await conn.close()


@pytest.mark.parametrize(
    "damage", ["DELETE FROM partner_pocket", "UPDATE partner_pocket SET status = 'FROZEN'"], ids=["missing", "changed"]
)
async def test_a_pocket_that_its_partner_does_not_list_as_it_is_is_named(bank, bank_dsn, damage):
    teller = EngineCommands(bank, "pockets")
    place = await teller.new_pocket(await teller.new_customer("Customer"))
    assert (await verified(bank_dsn)).is_clean
    conn = await asyncpg.connect(bank_dsn)
    assert await conn.execute(f"{damage} WHERE pocket_id = $1", place.id)
    await conn.close()
    found = {(each.table, each.key["pocket_id"]) for each in (await verified(bank_dsn)).findings}
    assert found == {("partner_pocket", place.id)}


@pytest.fixture
async def two_places(bank):
    """A payer with money and a payee on another node."""
    teller = EngineCommands(bank)
    by_node: dict[int, Place] = {}
    while len(by_node) < 2:
        place = await teller.new_pocket(await teller.new_customer(f"Customer {teller.count}"))
        by_node.setdefault(await bank.pool.fetchval(NODE, place.customer), place)
    payer, payee = by_node.values()
    await teller.receive_money(payer, 1_000_000_00)
    return payer, payee


async def test_what_decides_sees_a_transfer_between_two_nodes_whole(bank, two_places):
    teller, (payer, payee) = EngineCommands(bank), two_places

    async def read(conn, *, meanwhile=0):
        paid = await conn.fetchval(MOVED, payer.customer, "DEBIT")
        for _ in range(meanwhile):
            await teller.transfer(payer, payee, 1_00)
        return paid, await conn.fetchval(MOVED, payee.customer, "CREDIT")

    async with bank.pool.acquire() as conn, conn.transaction(isolation="repeatable_read", readonly=True):
        assert await read(conn, meanwhile=1) == (0, 1_00), "each node begins a snapshot of its own"
    async with bank.one_snapshot() as conn:
        assert await read(conn, meanwhile=1) == (1_00, 1_00)
    is_over = asyncio.Event()

    async def pay():
        own = EngineCommands(bank)
        while not is_over.is_set():
            await own.transfer(payer, payee, 1)

    paying, seen = [asyncio.create_task(pay()) for _ in range(4)], set()
    for _ in range(40):
        async with bank.one_snapshot() as conn:
            seen.add(await read(conn))
    is_over.set()
    await asyncio.gather(*paying)
    assert all(paid == received for paid, received in seen)
    assert len(seen) > 10, "transfers went on meanwhile"


async def test_a_decision_lets_bookings_go_on_and_commits_nothing_if_a_shard_was_moved(bank, bank_dsn, two_places):
    async def decide(doing):
        async with bank.pool.acquire() as conn, one_snapshot(conn, distributed=True, readonly=False, tries=1):
            await conn.execute(
                "INSERT INTO work_claim (name, owner_id, until) VALUES ('decided', gen_random_uuid(), now())"
            )
            await doing()

    async with bank.pool.acquire() as conn, conn.transaction():
        await read_clock(conn, hold=True)
        with pytest.raises(Unavailable):
            await decide(asyncio.Event().wait)
    deciding = asyncio.create_task(decide(asyncio.Event().wait))
    await asyncio.sleep(1)
    await teller_is_served(bank)
    deciding.cancel()
    await asyncio.wait([deciding])

    owner = await asyncpg.connect(bank_dsn)
    with pytest.raises(Unavailable, match="moved"):
        await decide(lambda: owner.execute(MOVE.format(two_places[0].customer)))
    await owner.close()
    assert await bank.pool.fetchval("SELECT count(*) FROM work_claim WHERE name = 'decided'") == 0
    await decide(lambda: teller_is_served(bank))
    assert await bank.pool.fetchval("SELECT count(*) FROM work_claim WHERE name = 'decided'") == 1


async def damaged(conn, table, customer):
    """Change a column of one row of a customer; return its key."""
    column, key = DAMAGED[table], ", ".join(TABLES[table].key)
    change = CHANGES[dict(await conn.fetch(COLUMNS, table))[column]].format(c=column)
    chosen = f"SELECT {key} FROM {table} WHERE customer_id = $1 AND {TABLES[table].where} ORDER BY {key} LIMIT 1"
    row = await conn.fetchrow(chosen, customer)
    where = " AND ".join(f"{name} = ${n}" for n, name in enumerate(row.keys(), 1))
    await conn.execute(f"UPDATE {table} SET {column} = {change} WHERE {where}", *row)
    return row


async def test_a_verification_waits_for_a_batch_and_for_a_node_that_has_half_of_one(bank, pg_server, bank_dsn):
    async with bank.pool.acquire() as conn, conn.transaction():
        await read_clock(conn, hold=True)
        waiting = asyncio.create_task(verified(bank_dsn))
        done, _ = await asyncio.wait([waiting], timeout=8)
        assert not done
    assert (await waiting).is_clean

    worker = await asyncpg.connect(pg_server.dsn_for(urlsplit(bank_dsn).path[1:], node=1))
    await worker.execute("BEGIN; CREATE TABLE half (n int); PREPARE TRANSACTION 'half'")
    waiting = asyncio.create_task(verified(bank_dsn))
    done, _ = await asyncio.wait([waiting], timeout=8)
    assert not done
    await teller_is_served(bank)
    await worker.execute("ROLLBACK PREPARED 'half'")
    assert (await waiting).is_clean
    await worker.close()


async def teller_is_served(bank):
    """Commands go on while a verification waits for a node."""
    teller = EngineCommands(bank)
    await teller.new_pocket(await teller.new_customer())
