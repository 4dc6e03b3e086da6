"""The application adds to the bank and owns nothing: what it may do is what its statements do."""

from collections import defaultdict

import asyncpg
import pytest
from tests.support.databases import as_application
from tests.support.rights_of_code import rights_of_code

from billfold.migrations import runner
from billfold.platform.database.connection import find_owner
from billfold.platform.database.distribution import is_distributed
from billfold.wiring import (
    scheduled_jobs,  # noqa: F401 - they import all classes of rows, which name their tables
)

GRANTED = """
SELECT c.relname, p.privilege
  FROM pg_class c CROSS JOIN (VALUES ('UPDATE'), ('DELETE'), ('TRUNCATE'), ('REFERENCES'), ('TRIGGER'), ('MAINTAIN'))
    AS p(privilege)
 WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r'
   AND CASE p.privilege WHEN 'UPDATE' THEN has_any_column_privilege('billfold_app', c.oid, p.privilege)
                        ELSE has_table_privilege('billfold_app', c.oid, p.privilege) END
"""
FUNCTIONS = "SELECT prosrc FROM pg_proc WHERE pronamespace = 'public'::regnamespace AND NOT prosecdef"
LOG = ("journal_entry", "chain_entry", "command", "event", "audit_entry", "audit_seal", "directory", "trade")
REFUSED = (
    "DROP TABLE journal_entry",
    "ALTER TABLE journal_entry DISABLE TRIGGER ALL",
    "ALTER TABLE journal_entry OWNER TO billfold_app",
    "ALTER DATABASE {database} SET session_replication_role = replica",
    "ALTER ROLE billfold_app SUPERUSER",
    "CREATE TABLE own (n int)",
    "CREATE TEMP TABLE journal_entry (n int)",
    "CREATE FUNCTION own() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "CREATE OR REPLACE FUNCTION event_renumber(reader text) RETURNS void LANGUAGE sql AS ''",
    "CREATE TRIGGER own BEFORE INSERT ON journal_entry EXECUTE FUNCTION refuse_change()",
    "CREATE RULE own AS ON INSERT TO journal_entry DO INSTEAD NOTHING",
    "CREATE SCHEMA own",
    "CREATE ROLE own",
    "CREATE DATABASE own TEMPLATE {database}",
    "CREATE PUBLICATION own FOR ALL TABLES",
    "SET ROLE postgres",
    "SET SESSION AUTHORIZATION postgres",
    "SET session_replication_role = replica",
    "SET log_statement = 'none'",
    "RESET ROLE; DELETE FROM journal_entry",
    "COPY journal_entry TO PROGRAM 'cat'",
    "COPY journal_entry TO '/tmp/journal_entry'",
    "COPY journal_entry FROM '/etc/passwd'",
    "SELECT pg_read_file('/etc/passwd')",
    "SELECT pg_ls_dir('/')",
    "SELECT lo_import('/etc/passwd')",
    "SELECT pg_reload_conf()",
    "UPDATE account SET kind = 'cash'",
    "UPDATE account SET customer_id = gen_random_uuid()",
    "UPDATE bank SET seed = ''",
    "UPDATE schema_migration SET sha256 = ''",
    "INSERT INTO schema_migration VALUES (9999, 'own', now(), '')",
    "SELECT setval('transaction_written_no_seq', 1)",
)


@pytest.fixture
async def application(conn, database_dsn):
    # A clone has not the rights of the database itself; migrating it, as forks are, gives them.
    assert await runner.up(conn) == []
    connection = await asyncpg.connect(as_application(database_dsn))
    yield connection
    await connection.close()


@pytest.mark.one_server
async def test_table_privileges_match_the_statements_of_the_code(conn):
    needed, locked = rights_of_code([row["prosrc"] for row in await conn.fetch(FUNCTIONS)])
    granted = defaultdict(set)
    for table, right in await conn.fetch(GRANTED):
        granted[table].add(right)
    tables = {row["relname"] for row in await conn.fetch("SELECT relname FROM pg_class WHERE relkind = 'r'")}
    assert granted == {table: rights for table, rights in needed.items() if table in tables}
    assert {table for table in locked & tables if "UPDATE" not in granted[table]} <= {"delivery_attempt"}
    assert not granted.keys() & set(LOG)


async def test_the_application_role_may_read_and_insert_into_later_tables_only(conn, application):
    await conn.execute("CREATE TABLE later (n int)")
    await application.execute("INSERT INTO later SELECT 1")
    for refused in ("UPDATE later SET n = 2", "DELETE FROM later", "TRUNCATE later"):
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await application.execute(refused)


async def test_the_application_role_cannot_change_log_tables_or_gain_privileges(conn, application):
    name = await conn.fetchval("SELECT current_database()")
    log = [sql.format(t) for t in LOG for sql in ("DELETE FROM {}", "TRUNCATE {}")]
    columns = await conn.fetch(
        "SELECT table_name, column_name FROM information_schema.columns WHERE table_name = ANY($1)", LOG
    )
    log += [f"UPDATE {table} SET {column} = {column}" for table, column in columns]
    refusals: list[type[Exception]] = [asyncpg.InsufficientPrivilegeError]
    if await is_distributed(conn):  # it refuses to move a row before it looks at rights
        refusals.append(asyncpg.FeatureNotSupportedError)
    for statement in (*log, *(each.format(database=name) for each in REFUSED)):
        with pytest.raises(tuple(refusals)):
            await application.execute(statement)
            pytest.fail(f"{statement} is not refused")
    assert await application.fetchval("SELECT session_user = current_user AND current_user = 'billfold_app'")
    assert await find_owner(application, "journal_entry") is None
    assert await find_owner(conn, "journal_entry") == "postgres"


async def test_events_are_renumbered_only_in_a_restored_bank(conn, application):
    await conn.execute("INSERT INTO event SELECT gen_random_uuid(), 1, gen_random_uuid(), 'x', '{}', now()")
    before = await conn.fetchval("SELECT xid FROM event")
    await application.execute("SELECT event_renumber('sequencer')")
    assert await conn.fetchval("SELECT xid FROM event") == before
