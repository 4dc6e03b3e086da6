"""Every damaged row is refused by a constraint or named by `verify`: every table, every provable column."""

from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import asyncpg
import pytest
import pytest_asyncio
from tests.support.rights_of_code import is_stored

from billfold.bills.rules.market import Market
from billfold.dual_control.store import FreezeProposal
from billfold.platform.calendars import Calendars
from billfold.platform.database.rows import Row
from billfold.verify import runner, streams
from billfold.verify.customers import LedgerWalk
from billfold.verify.runner import verify_bank

# On one connection: to plan the statements of a verification takes longer than to run them on a small bank.
pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.one_server]  # rows are damaged by their place
MARKET = Market.packaged(Calendars())


class DamageCase(NamedTuple):
    """A table: its key, the columns that cannot be proved, which row to damage."""

    key: tuple[str, ...]
    undetectable: tuple[str, ...] = ()
    where: str = "true"


# Names, contact details and the like are in no log; nothing says what they were before.
TABLES = {
    "ledger_head": DamageCase(("customer_id",), where="entry_no > 5"),
    "customer": DamageCase(("customer_id",), ("type", "profile"), where="role = 'customer' AND closed_at IS NULL"),
    "account": DamageCase(("customer_id", "account_no"), where="kind = 'lot' AND credits > debits"),
    "journal_entry": DamageCase(("customer_id", "entry_no")),
    "trade": DamageCase(("customer_id", "pocket_id", "entry_no", "trade_no")),
    "transaction": DamageCase(("customer_id", "pocket_id", "entry_no", "posting_no")),
    "event": DamageCase(("customer_id", "event_no")),
    "command": DamageCase(("customer_id", "command_id")),
    "chain_entry": DamageCase(("customer_id", "version"), where="length(row_checksums) > 40"),
    "pocket": DamageCase(
        ("customer_id", "pocket_id"), (), where="status = 'OPEN' AND outflow > 0 AND inflow > outflow + 10000"
    ),
    "snapshot": DamageCase(("customer_id", "pocket_id", "business_date")),
    "hold": DamageCase(("customer_id", "hold_id"), (), where="status = 'ACTIVE'"),
    "portal": DamageCase(("customer_id", "portal_id"), ("type", "name", "payment_rails"), where="status = 'OPEN'"),
    "counterparty": DamageCase(
        ("customer_id", "counterparty_id"),
        ("type", "status", "counterparty_name", "display_name", "verification", "details"),
    ),
    "transfer": DamageCase(
        ("customer_id", "transfer_id"),
        ("request",),
        where="status = 'COMPLETED' AND NOT EXISTS"
        " (SELECT 1 FROM trade WHERE trade.transfer_id = transfer.transfer_id)",
    ),
    "directory": DamageCase(("kind", "value")),
    "clearing": DamageCase(("customer_id", "entry_no")),
    "suspense_item": DamageCase(("customer_id", "item_id"), ("details",)),
    "security_transfer": DamageCase(("customer_id", "transfer_id")),
    "freeze_proposal": DamageCase(("customer_id", "proposal_id")),
    "settlement": DamageCase(("settles_on", "cusip", "price_micros", "side", "closed_on")),
}
CHANGES = {
    "bigint": "coalesce({c}, 0) + 1",
    "integer": "coalesce({c}, 0) + 1",
    "smallint": "coalesce({c}, 0) + 1",
    "boolean": "NOT {c}",
    "text": "coalesce({c}, '') || 'x'",
    "character": "'912796XXX'",
    "uuid": "'01234567-89ab-8def-8123-456789abcdef'",
    "date": "coalesce({c}, date '2025-06-02') + 1",
    "timestamp with time zone": "coalesce({c}, timestamptz '2025-06-03Z') + interval '1 minute'",
    "json": """'{{"changed": true}}'""",
    "time without time zone": "coalesce({c}, time '12:00') + interval '1 minute'",
    "bytea": r"CASE WHEN length({c}) > 0 THEN set_byte({c}, 0, get_byte({c}, 0) # 1) ELSE '\x2a' END",
}
COLUMNS = """
SELECT column_name, data_type FROM information_schema.columns
 WHERE table_schema = 'public' AND table_name = $1 AND is_identity = 'NO' ORDER BY ordinal_position
"""
# What the database itself refuses: a constraint that is lost is noticed here, whatever `verify` finds.
REFUSED_COLUMNS = {
    "portal": {"chain", "wallet_address", "asset", "xpub_id", "address_index"},
    "account": {"account_no", "kind"},
    "chain_entry": {"version"},
    "clearing": {"entry_no", "rail"},
    "event": {"event_no"},
    "freeze_proposal": {"customer_id", "ends_entry_no", "movement", "owner_id", "status", "subject"},
    "hold": {"amount", "captured", "placed", "status"},
    "journal_entry": {"entry_no"},
    "pocket": {"closed_at", "status", "type"},
    "security_transfer": {"direction", "reason", "status"},
    "settlement": {"side"},
    "suspense_item": {"direction", "ended_at", "ended_entry_no", "owner_id", "rail", "return_reason", "status"},
    "trade": {"activity", "entry_no"},
    "transaction": {"direction", "type"},
    "transfer": {"type"},
}
REFUSED_ADDITIONS = {"account", "chain_entry"}
REFUSED_SWAPS = {"account"}
CONSTRAINED_COLUMNS = """
SELECT array_agg(attname::text) FROM pg_constraint JOIN pg_attribute ON attrelid = conrelid AND attnum = ANY (conkey)
 WHERE conname = $1 AND conrelid = $2::regclass
"""
# Where adding one would still make sense, or would change nothing that counts.
OTHERWISE = {
    ("account", "kind"): "'street'",
    ("account", "asset"): "'912796XXX'",
    ("customer", "role"): "'partner'",
    ("customer", "account_status"): "'FROZEN'",
    ("customer", "agreement_version"): "'2999-01-01'",
    ("pocket", "status"): "'CLOSED'",
    ("pocket", "uninvested"): "cents_in_hand + 1",
    ("portal", "status"): "'CLOSED'",
    ("transfer", "status"): "'PENDING'",
    ("snapshot", "positions"): """'[["912796XXX", 5]]'""",
}


@pytest.fixture(autouse=True)
def _end_after_the_first_section_with_a_finding(monkeypatch):
    """Leave out the sections after it: the report begins with a finding of the first one that has any."""
    walked: list[Any] = []

    def unless_found(check, findings_of):
        async def checked(*values):
            findings = findings_of(*values)
            earlier = [each for each in walked if each is not findings and each.first]
            if not earlier and (findings.first is None or findings.first[0] == findings.section):
                await check(*values)

        return checked

    def of_walk(walk, *_):
        walked[:] = [walk.found]
        return walk.found

    monkeypatch.setattr(LedgerWalk, "_customer", unless_found(LedgerWalk._customer, of_walk))
    for name in ("check_fingerprints", "check_parts", "check_bank_totals"):
        monkeypatch.setattr(runner, name, unless_found(getattr(runner, name), lambda _, findings, *__: findings))


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def one_connection(damaged_bank):
    """A connection to the small bank."""
    conn = await asyncpg.connect(damaged_bank)
    yield conn
    await conn.close()


@pytest_asyncio.fixture(loop_scope="module")
async def damaged_conn(one_connection):
    """The connection, with a transaction that is rolled back after the test."""
    async with rolled_back(one_connection):
        yield one_connection


async def test_an_undamaged_bank_verifies_clean(damaged_conn):
    report = await verify_bank(damaged_conn, market=MARKET)
    assert report.is_clean, report.findings
    assert report.checked["posting"] > 100


def columns_to_damage(table):
    """Every proved column; which there are is read from the migration's tables by name."""
    listed = {table.name: table.columns for table in (*streams.CUSTOMER_TABLES, streams.LEDGER_HEADS)}
    listed |= {row.table: row.__struct_fields__ for row in Row.__subclasses__() if is_stored(row)}
    listed["freeze_proposal"] = FreezeProposal.__struct_fields__
    return [column for column in listed[table] if column not in TABLES[table].undetectable]


@pytest.mark.parametrize("table", TABLES)
async def test_verify_reports_a_row_with_a_changed_column(damaged_conn, table):
    for column in columns_to_damage(table):
        async with rolled_back(damaged_conn):
            await report_a_changed_column(damaged_conn, table, column)


async def report_a_changed_column(damaged_conn, table, column):
    before = await one_row(damaged_conn, table)
    types = dict(await damaged_conn.fetch(COLUMNS, table))
    change = OTHERWISE.get((table, column), CHANGES.get(types[column], "")).format(c=column)
    change = change.replace("cents_in_hand", "9000000000")
    damage = f"UPDATE {table} SET {column} = {change} WHERE ctid = $1::text::tid RETURNING *"
    after, constrained = await attempt(damaged_conn, damage, before["ctid"])
    assert bool(constrained) == (column in REFUSED_COLUMNS.get(table, ())), column
    if constrained:
        assert column in constrained
    else:
        assert after[column] != before[column], column
        assert_finding(await verify_bank(damaged_conn, market=MARKET), table, before, after)


@pytest.mark.parametrize("table", TABLES)
async def test_verify_reports_a_deleted_row(damaged_conn, table):
    if table == "hold":
        pytest.skip("the first finding is the lien that its Pocket lacks")
    before = await one_row(damaged_conn, table)
    await damaged_conn.execute(f"DELETE FROM {table} WHERE ctid = $1::text::tid", before["ctid"])
    assert_finding(await verify_bank(damaged_conn, market=MARKET), table, before)


@pytest.mark.parametrize("table", TABLES)
async def test_inserting_a_duplicate_row_is_refused(damaged_conn, table):
    before = await one_row(damaged_conn, table)
    with pytest.raises(asyncpg.UniqueViolationError):
        twice = f"INSERT INTO {table} OVERRIDING USER VALUE SELECT * FROM {table} WHERE ctid = $1::text::tid"
        await damaged_conn.execute(twice, before["ctid"])


NUMBERED = {
    "account": "account_no",
    "journal_entry": "entry_no",
    "trade": "trade_no",
    "transaction": "posting_no",
    "event": "event_no",
    "chain_entry": "version",
}


@pytest.mark.parametrize("table", NUMBERED)
async def test_verify_reports_a_row_appended_after_the_last(damaged_conn, table):
    number = NUMBERED[table]
    before = await one_row(damaged_conn, table, order=f"{number} DESC")
    columns = [name for name, _ in await damaged_conn.fetch(COLUMNS, table)]
    values = ", ".join(f"coalesce({c}, 0) + 1" if c == number else c for c in columns)
    into = f"INSERT INTO {table} ({', '.join(columns)})"
    damage = f"{into} SELECT {values} FROM {table} WHERE ctid = $1::text::tid RETURNING *"
    after, constrained = await attempt(damaged_conn, damage, before["ctid"])
    assert bool(constrained) == (table in REFUSED_ADDITIONS)
    if not constrained:
        assert_finding(await verify_bank(damaged_conn, market=MARKET), table, after)


async def test_verify_reports_a_former_row_that_no_command_left(damaged_conn):
    changed = "UPDATE former_row SET row = jsonb_set(row::jsonb, '{amount}', '1')::json WHERE kind = 'hold'"
    async with rolled_back(damaged_conn):
        await damaged_conn.execute(changed)
        first = (await verify_bank(damaged_conn, market=MARKET)).findings[0]
    assert (first.table, first.key["kind"]) == ("former_row", "hold")


async def test_verify_reports_a_former_state_of_a_pocket_that_differs_from_the_log(damaged_conn):
    before = await damaged_conn.fetchrow(
        "SELECT customer_id, pocket_id, known_at, version FROM pocket_version ORDER BY version DESC LIMIT 1"
    )
    richer = "UPDATE pocket_version SET state = jsonb_set(state::jsonb, '{10}', '1')::json WHERE version = $1"
    await damaged_conn.execute(f"{richer} AND pocket_id = $2", before["version"], before["pocket_id"])
    first = (await verify_bank(damaged_conn, market=MARKET)).findings[0]
    assert (first.table, first.key["version"]) == ("pocket_version", before["version"])


POSTING_DAMAGE = {
    "more money": "SET postings[2].amount = postings[2].amount + 1",
    "from another account": "SET postings[2].debit = postings[2].credit + 1",
    "to another account": "SET postings[2].credit = postings[2].credit + 1",
    "of another asset": "SET postings[2].asset = '912796XXX'",
    "only reserved": "SET postings[2].phase = 1",
    "left out": "SET postings = postings[:1] || postings[3:]",
    "swapped with the next": "SET postings[2] = postings[3], postings[3] = postings[2]",
    "added before it": "SET postings = postings[:1] || postings[1] || postings[2:]",
}


@pytest.mark.parametrize("damage", POSTING_DAMAGE.values(), ids=POSTING_DAMAGE)
async def test_verify_reports_a_damaged_posting(damaged_conn, damage):
    of_three = "SELECT * FROM posting WHERE posting_no = 2 AND (customer_id, entry_no) IN"
    of_three += (
        " (SELECT customer_id, entry_no FROM posting WHERE posting_no = 3) ORDER BY customer_id, entry_no LIMIT 1"
    )
    row = await damaged_conn.fetchrow(of_three)
    key = row["customer_id"], row["entry_no"]
    await damaged_conn.execute(f"UPDATE journal_entry {damage} WHERE (customer_id, entry_no) = ($1, $2)", *key)
    assert_finding(await verify_bank(damaged_conn, market=MARKET), "posting", row)


@pytest.mark.parametrize(("field", "value"), {"amount": 0, "credit": None, "phase": 3, "asset": None}.items())
async def test_storing_an_invalid_posting_violates_a_constraint(damaged_conn, field, value):
    with pytest.raises(asyncpg.CheckViolationError):
        await damaged_conn.execute(f"UPDATE journal_entry SET postings[1].{field} = $1", value)


async def test_verify_reports_every_snapshot_moved_to_a_different_journal_entry(damaged_conn):
    # Also where the pocket itself had not moved by then, which depends on the order of ids.
    missed = []
    for row in await damaged_conn.fetch("SELECT * FROM snapshot ORDER BY customer_id, entry_no, pocket_id"):
        async with rolled_back(damaged_conn):
            changed = "UPDATE snapshot SET entry_no = entry_no + 1"
            key = row["customer_id"], row["pocket_id"], row["business_date"]
            await damaged_conn.execute(f"{changed} WHERE (customer_id, pocket_id, business_date) = ($1, $2, $3)", *key)
            first = (await verify_bank(damaged_conn, market=MARKET)).first
        if first is None or first.table != "snapshot" or not same_key(first.key, row):
            missed.append((row, first))
    assert missed == []


async def test_verify_reports_a_command_with_an_altered_request_hash(damaged_conn):
    row = await damaged_conn.fetchrow("SELECT * FROM command WHERE request_hash = '' LIMIT 1")
    await damaged_conn.execute(
        r"UPDATE command SET request_hash = '\x2a' WHERE (customer_id, command_id) = ($1, $2)",
        row["customer_id"],
        row["command_id"],
    )
    assert_finding(await verify_bank(damaged_conn, market=MARKET), "command", row)


@asynccontextmanager
async def rolled_back(conn):
    transaction = conn.transaction()
    await transaction.start()
    yield
    await transaction.rollback()


SWAPPED_COLUMNS = {
    "account": "debits",
    "trade": "notional",
    "transaction": "amount",
    "event": "payload",
    "command": "outcome",
    "snapshot": "cash",
    "pocket": "inflow",
    "ledger_head": "chain",
    "chain_entry": "hash",
    "transfer": "amount",
    "journal_entry": "settles_on",
    "settlement": "customers_cents",
    "clearing": "inflow",
    "suspense_item": "amount",
    "security_transfer": "units",
    "directory": "object_id",
    "portal": "account_number",
}


@pytest.mark.parametrize(("table", "column"), SWAPPED_COLUMNS.items())
async def test_swapped_rows_violate_a_constraint_or_are_reported_by_verify(damaged_conn, table, column):
    rows = await damaged_conn.fetch(
        f"SELECT DISTINCT ON ({column}::text) ctid::text, * FROM {table}"
        f" WHERE {TABLES[table].where} ORDER BY {column}::text LIMIT 2"
    )
    one, other = rows
    assert one[column] != other[column]
    swapped = f"SELECT {column} FROM {table} o WHERE o.ctid IN ($1::text::tid, $2::text::tid) AND o.ctid <> t.ctid"
    damage = f"UPDATE {table} t SET {column} = ({swapped}) WHERE ctid IN ($1::text::tid, $2::text::tid)"
    _, constrained = await attempt(damaged_conn, damage, one["ctid"], other["ctid"])
    if constrained:
        assert table in REFUSED_SWAPS
        return
    first = (await verify_bank(damaged_conn, market=MARKET)).first
    assert first is not None
    assert first.table == table
    assert any(same_key(first.key, row) for row in (one, other)), first


async def attempt(conn, damage, *values):
    """Return the row after the damage, and of the constraint that refuses it the columns."""
    try:
        async with conn.transaction():
            return await conn.fetchrow(damage, *values), None
    except asyncpg.IntegrityConstraintViolationError as refusal:
        return None, await conn.fetchval(CONSTRAINED_COLUMNS, refusal.constraint_name, refusal.table_name)


async def one_row(conn, table, order=None):
    """A row from the middle of the table, with the address by which it is found again."""
    proved = TABLES[table]
    order = order or ", ".join(proved.key)
    rows = await conn.fetch(f"SELECT ctid::text, * FROM {table} WHERE {proved.where} ORDER BY {order}")
    return rows[0] if "DESC" in order else rows[len(rows) // 2]


def assert_finding(report, table, *rows):
    """The first finding is of this table and has the key of one of these rows."""
    assert report.first is not None
    assert report.first.table == table, report.findings
    assert any(same_key(report.first.key, row) for row in rows), report.findings


def same_key(key, row):
    """Does what is known of the key fit the row? Of a row that is gone not all may be known."""
    return bool(key) and all(row[name] == value for name, value in key.items())
