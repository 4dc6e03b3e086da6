import asyncio
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import asyncpg
import pytest

from billfold.audit import record as audit_record
from billfold.audit import rules, store
from billfold.audit.rules import CHAIN_START, EntryFilter, NewEntry
from billfold.ledger.types import Origin
from billfold.platform import ids
from billfold.platform.crypto import Vault
from billfold.platform.database.pool import APP_ROLE, create_pool
from billfold.platform.errors import Refused

VAULT = Vault(bytes(range(32)))
NOW = datetime(2025, 6, 2, 13, tzinfo=UTC)
PARTNER = Origin(kind="PARTNER", name="acme", client_id="partner-user:1", ip_address="192.0.2.1", user_agent="curl/8")


@pytest.fixture
async def pool(database_dsn):
    opened = await create_pool(database_dsn, max_size=8, role=APP_ROLE)
    yield opened
    await opened.close()


def entry(customer_id, action="pocket.created", **fields):
    return NewEntry(customer_id=customer_id, origin=PARTNER, action=action, resource_type="pocket", **fields)


async def record(pool, *entries, now=NOW):
    async with pool.acquire() as conn, conn.transaction():
        await audit_record.record_all(conn, VAULT, entries, now=now)


async def log_of(pool, customer_id, **wanted):
    asked = EntryFilter(customer_id=customer_id, **wanted)
    return await store.list_entries(pool, asked, descending=False, limit=1000)


def audited(pool, customer, **fields):
    log = SimpleNamespace(pool=pool, vault=VAULT)
    return audit_record.audited(log, customer, PARTNER, "member.updated", now=NOW, **fields)


def checksum_matches(rows):
    previous = CHAIN_START
    for number, row in enumerate(rows, 1):
        if row.entry_no != number or not rules.is_chained_to(previous, row, VAULT):
            return False
        previous = row.hash
    return True


async def test_entries_are_numbered_and_chained_per_customer(pool):
    one, other = ids.new(), ids.new()
    await record(pool, entry(one), entry(other), entry(one, "pocket.updated", details={"a": 1}))
    await record(pool, entry(one, "pocket.closed", outcome="FAILURE"))
    rows = await log_of(pool, one)
    assert [row.action for row in rows] == ["pocket.created", "pocket.updated", "pocket.closed"]
    assert [row.details for row in rows] == ["{}", '{"a":1}', "{}"]
    assert (rows[0].actor, rows[0].actor_name, rows[0].ip_address) == ("PARTNER", "acme", "192.0.2.1")
    assert checksum_matches(rows)
    assert checksum_matches(await log_of(pool, other))


async def test_concurrent_writers_leave_one_chain_without_a_gap(pool):
    customers = [ids.new() for _ in range(3)]
    # Each writes to all customers, in another order.
    await asyncio.gather(
        *(record(pool, *(entry(c) for c in customers[n % 3 :] + customers[: n % 3])) for n in range(40))
    )
    for customer in customers:
        rows = await log_of(pool, customer)
        assert len(rows) == 40
        assert checksum_matches(rows)


async def test_timestamps_never_decrease_within_an_audit_log(pool):
    customer = ids.new()
    await record(pool, entry(customer))
    await record(pool, entry(customer), now=NOW - timedelta(seconds=5))
    first, second = await log_of(pool, customer)
    assert first.recorded_at == second.recorded_at == NOW


async def test_a_rolled_back_entry_leaves_no_gap_in_the_audit_log(pool):
    customer = ids.new()
    async with pool.acquire() as conn:
        transaction = conn.transaction()
        await transaction.start()
        await audit_record.record(conn, VAULT, entry(customer), now=NOW)
        await transaction.rollback()
    await record(pool, entry(customer))
    assert [row.entry_no for row in await log_of(pool, customer)] == [1]


@pytest.mark.parametrize("table", ["audit_entry", "audit_seal"])
@pytest.mark.parametrize("change", ["UPDATE {} SET {}", "DELETE FROM {}", "TRUNCATE {}"])
async def test_changing_an_audit_entry_is_denied_even_to_the_table_owner(pool, conn, table, change):
    await record(pool, entry(ids.new()))
    columns = {"audit_entry": "outcome = 'FAILURE'", "audit_seal": "line = ''"}
    statement = change.format(table, columns[table])
    with pytest.raises(asyncpg.InsufficientPrivilegeError, match="permission denied"):
        await pool.execute(statement)
    with pytest.raises(asyncpg.InsufficientPrivilegeError, match="never changed"):
        await conn.execute(statement)


async def test_the_application_cannot_change_the_schema(pool):
    for statement in (
        "ALTER TABLE audit_entry DISABLE TRIGGER ALL",
        "DROP TABLE audit_chain_head",
        "DELETE FROM audit_chain_head",
        "UPDATE schema_migration SET sha256 = ''",
    ):
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await pool.execute(statement)


async def test_the_application_role_has_access_to_tables_created_later(pool, conn):
    await conn.execute("CREATE TABLE later (n int)")
    await pool.execute("INSERT INTO later VALUES (1)")
    assert await pool.fetchval("SELECT n FROM later") == 1


async def test_an_audited_action_is_recorded_with_the_details_added_during_it(pool):
    customer, made = ids.new(), ids.new()
    async with audited(pool, customer) as action:
        action.resource_id = made
        action.details["role"] = "VIEWER"
    (row,) = await log_of(pool, customer)
    assert (row.resource_id, row.outcome, row.details) == (str(made), "SUCCESS", '{"role":"VIEWER"}')


async def test_a_refused_action_is_rolled_back_and_recorded_as_a_failure(pool):
    customer = ids.new()
    with pytest.raises(Refused):
        async with audited(pool, customer, details={"role": "VIEWER"}) as action:
            await action.conn.execute("INSERT INTO clock VALUES (true, now(), now(), true)")
            raise Refused("last-administrator", "Somebody has to stay.")
    (row,) = await log_of(pool, customer)
    assert (row.outcome, row.details) == ("FAILURE", '{"role":"VIEWER","refused":"last-administrator"}')
    assert await pool.fetchval("SELECT count(*) FROM clock") == 0


async def test_a_skipped_action_leaves_no_audit_entry(pool):
    customer = ids.new()
    async with audited(pool, customer) as action:
        action.skip()
    assert await log_of(pool, customer) == []
