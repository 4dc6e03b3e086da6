"""The schema goes up, down and up again, whole or not at all, by one process at a time."""

import asyncio
import shutil

import asyncpg
import pytest

from billfold.migrations import runner
from billfold.migrations.runner import MigrationError

# Everything a migration can leave behind, in words that do not depend on object ids.
CATALOGUE = """
SELECT 'relation', c.relkind::text, c.oid::regclass::text, c.relpersistence::text,
       c.reloptions::text
  FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace
UNION ALL
SELECT 'column', a.attnum::text, a.attrelid::regclass::text || '.' || a.attname,
       concat_ws(' ', format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attidentity,
                 a.attgenerated),
       pg_get_expr(d.adbin, d.adrelid)
  FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
  LEFT JOIN pg_attrdef d ON (d.adrelid, d.adnum) = (a.attrelid, a.attnum)
 WHERE c.relnamespace = 'public'::regnamespace AND a.attnum > 0 AND NOT a.attisdropped
UNION ALL
SELECT 'constraint', contype::text, conrelid::regclass::text || '.' || conname,
       pg_get_constraintdef(oid), NULL
  FROM pg_constraint WHERE connamespace = 'public'::regnamespace
UNION ALL
SELECT 'index', indisvalid::text, indexrelid::regclass::text, pg_get_indexdef(indexrelid), NULL
  FROM pg_index JOIN pg_class c ON c.oid = indexrelid WHERE c.relnamespace = 'public'::regnamespace
UNION ALL
SELECT 'function', prokind::text, oid::regprocedure::text, prosrc, proconfig::text
  FROM pg_proc WHERE pronamespace = 'public'::regnamespace
UNION ALL
SELECT 'trigger', NULL, tgrelid::regclass::text || '.' || tgname, pg_get_triggerdef(oid), NULL
  FROM pg_trigger WHERE NOT tgisinternal
UNION ALL
SELECT 'type', typtype::text, oid::regtype::text, NULL, NULL
  FROM pg_type WHERE typnamespace = 'public'::regnamespace
UNION ALL
SELECT 'schema', NULL, nspname, NULL, NULL FROM pg_namespace WHERE nspname !~ '^pg_'
UNION ALL
SELECT 'extension', NULL, extname, extversion, NULL FROM pg_extension
"""


@pytest.fixture
def folder(tmp_path):
    write(tmp_path, "0001_one", "CREATE TABLE one (x int);", down="DROP TABLE one;")
    write(tmp_path, "0002_two", "CREATE TABLE two (x int);", down="DROP TABLE two;")
    return tmp_path


def write(folder, name, up, down):
    (folder / f"{name}.up.sql").write_text(up)
    (folder / f"{name}.down.sql").write_text(down)


async def read_catalogue(conn):
    return {tuple(row) for row in await conn.fetch(CATALOGUE)}


async def tables(conn):
    rows = await conn.fetch("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
    return {row["tablename"] for row in rows}


async def test_migrating_down_removes_everything_and_up_recreates_the_same_schema(empty_conn):
    before = await read_catalogue(empty_conn)

    names = await runner.up(empty_conn)
    first = await read_catalogue(empty_conn)
    assert await runner.down(empty_conn) == names[::-1]
    assert await runner.pending(empty_conn) == names
    assert await runner.up(empty_conn) == names
    assert await read_catalogue(empty_conn) == first

    await runner.down(empty_conn)
    await empty_conn.execute("DROP TABLE schema_migration")
    assert await read_catalogue(empty_conn) == before


async def test_up_without_pending_migrations_changes_nothing(conn):
    before = await read_catalogue(conn)

    assert await runner.pending(conn) == []
    assert await runner.up(conn) == []
    assert await read_catalogue(conn) == before


async def test_pending_on_an_empty_database_creates_nothing(empty_conn, folder):
    assert await runner.pending(empty_conn, folder=folder) == ["0001_one", "0002_two"]
    assert await runner.down(empty_conn, folder=folder) == []
    assert await tables(empty_conn) == set()


async def test_up_reports_every_step_when_it_begins(empty_conn, folder):
    said: list[str] = []

    assert await runner.up(empty_conn, said.append, folder=folder) == ["0001_one", "0002_two"]
    assert said == ["Migrating to 0001_one", "Migrating to 0002_two"]


async def test_down_stops_at_the_requested_version(empty_conn, folder):
    await runner.up(empty_conn, folder=folder)

    assert await runner.down(empty_conn, to=1, folder=folder) == ["0002_two"]
    assert await tables(empty_conn) == {"one", "schema_migration"}
    assert await runner.pending(empty_conn, folder=folder) == ["0002_two"]


async def test_up_with_an_edited_applied_file_is_refused(empty_conn, folder):
    await runner.up(empty_conn, folder=folder)
    write(folder, "0001_one", "CREATE TABLE one (x bigint);", down="DROP TABLE one;")

    for read in (runner.up, runner.pending):
        with pytest.raises(MigrationError, match="0001_one was applied"):
            await read(empty_conn, folder=folder)


async def test_up_on_a_database_newer_than_the_files_is_refused(empty_conn, folder):
    write(folder, "0002_two", "-- Needs a stop: why.\nCREATE TABLE two (x int);", down="DROP TABLE two;")
    await runner.up(empty_conn, folder=folder)
    for path in folder.glob("0002*"):
        path.unlink()

    with pytest.raises(MigrationError, match="at 0002_two, newer"):
        await runner.up(empty_conn, folder=folder)
    with pytest.raises(MigrationError, match="down file is missing"):
        await runner.down(empty_conn, folder=folder)


UNRELEASED = """
CREATE TABLE schema_migration (version int PRIMARY KEY, name text, applied_at timestamptz, sha256 text);
INSERT INTO schema_migration VALUES (1, '0001_house', now(), ''), (2, '0002_people', now(), '');
CREATE TABLE person (user_id uuid);
"""


async def test_a_schema_from_before_the_first_release_is_refused_and_left_unchanged(empty_conn):
    await empty_conn.execute(UNRELEASED)
    before = await read_catalogue(empty_conn)

    for attempt in (runner.up, runner.down, runner.pending, runner.is_empty):
        with pytest.raises(MigrationError, match=r"before release 0\.1\.0") as refusal:
            await attempt(empty_conn)
        assert "billfold sandbox --fresh" in refusal.value.next_step
    assert await read_catalogue(empty_conn) == before


async def test_a_failed_step_keeps_the_earlier_steps_applied(empty_conn, folder):
    write(folder, "0002_two", "CREATE TABLE two (x int); SELECT 1 / 0;", down="DROP TABLE two;")

    with pytest.raises(asyncpg.DivisionByZeroError):
        await runner.up(empty_conn, folder=folder)

    assert await tables(empty_conn) == {"one", "schema_migration"}
    assert await runner.pending(empty_conn, folder=folder) == ["0002_two"]


async def test_a_migration_step_has_a_time_limit_unless_it_needs_a_stop(empty_conn, tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "_STEP_SECONDS", 0.01)
    write(tmp_path, "0001_stopped", "-- Needs a stop: it sleeps.\nSELECT pg_sleep(0.1);", down="")
    write(tmp_path, "0002_in_use", "SELECT pg_sleep(5);", down="")
    with pytest.raises(TimeoutError):
        await runner.up(empty_conn, folder=tmp_path)
    assert await runner.pending(empty_conn, folder=tmp_path) == ["0002_in_use"]


async def test_concurrent_migrations_apply_every_step_once(empty_database_dsn, folder):
    connections = [await asyncpg.connect(empty_database_dsn) for _ in range(3)]

    done = await asyncio.gather(*(runner.up(each, folder=folder) for each in connections))

    assert sorted(name for names in done for name in names) == ["0001_one", "0002_two"]
    for each in connections:
        await each.close()


OUTSIDE = """-- Outside a transaction
CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS two_x ON two (x);
ALTER TABLE two VALIDATE CONSTRAINT two_positive; -- it was added without a look at the rows
"""
TWO = "CREATE TABLE two (x int); ALTER TABLE two ADD CONSTRAINT two_positive CHECK (x > 0) NOT VALID;"
VALID = "SELECT indisvalid FROM pg_index WHERE indexrelid = 'two_x'::regclass"


def test_a_step_is_split_at_the_ends_of_its_statements_alone(tmp_path):
    function = "CREATE FUNCTION one() RETURNS int AS $a$\n  -- It's; one\n  SELECT 1;\n$a$ LANGUAGE sql"
    text = f"-- First; of two\n{function};\n-- don't\nINSERT INTO two VALUES (';', 'it''s;'); -- why;\n"
    (tmp_path / "0001_one.up.sql").write_text(text)
    (tmp_path / "0001_one.down.sql").write_text("SELECT 1")
    (step,) = runner.read_migrations(tmp_path)
    assert step.statements == [function, "INSERT INTO two VALUES (';', 'it''s;')"]
    assert all(each.count("$$") % 2 == 0 for step in runner.read_migrations() for each in step.statements)


async def test_failed_statements_outside_a_transaction_are_rerun_by_either_process(empty_database_dsn, folder):
    write(folder, "0002_two", TWO, down="DROP TABLE two;")
    connections = [await asyncpg.connect(empty_database_dsn) for _ in range(2)]
    first, _ = connections
    await runner.up(first, folder=folder)
    await first.execute("INSERT INTO two VALUES (1), (1)")
    write(folder, "0003_index", OUTSIDE, down="DROP INDEX two_x;")
    with pytest.raises(asyncpg.UniqueViolationError):
        await runner.up(first, folder=folder)
    assert await first.fetchval(VALID) is False

    await first.execute("DELETE FROM two")
    done = await asyncio.gather(*(runner.up(each, folder=folder) for each in connections))
    assert sorted(done) == [[], ["0003_index"]]
    assert await first.fetchval(VALID) is True
    for each in connections:
        await each.close()


async def test_a_migration_releases_and_retries_its_lock_to_not_block_readers(empty_database_dsn, folder, monkeypatch):
    monkeypatch.setattr(runner, "LOCK_WAIT", "10ms")
    monkeypatch.setattr(runner, "_PAUSE_SECONDS", 0.01)
    conn, reader = [await asyncpg.connect(empty_database_dsn) for _ in range(2)]
    await runner.up(conn, folder=folder)
    write(folder, "0003_column", "ALTER TABLE two ADD COLUMN y int;", down="ALTER TABLE two DROP COLUMN y;")
    reading = reader.transaction()
    await reading.start()
    await reader.fetch("SELECT x FROM two")
    with pytest.raises(MigrationError, match="0003_column did not get its lock"):
        await runner.up(conn, folder=folder)

    said: list[str] = []
    migrating = asyncio.create_task(runner.up(conn, said.append, folder=folder))
    while "0003_column waits for a lock; it is tried again" not in said:
        await asyncio.sleep(0.01)
    await reading.commit()
    assert await migrating == ["0003_column"]
    for each in (conn, reader):
        await each.close()


async def test_a_release_runs_on_a_newer_schema_unless_it_requires_a_newer_release(empty_conn, folder, tmp_path):
    later = tmp_path / "later"
    shutil.copytree(folder, later, ignore=lambda *_: ["later"])
    for version, says in ((3, ""), (4, "-- Contracts: schema 0002\n")):
        write(
            later,
            f"000{version}_more",
            f"{says}CREATE TABLE more_{version} (x int);",
            down=f"DROP TABLE more_{version};",
        )
    await runner.up(empty_conn, folder=later)
    assert await runner.pending(empty_conn, folder=folder) == []

    write(later, "0005_fewer", "-- Contracts: schema 0003\nDROP TABLE one;", down="CREATE TABLE one (x int);")
    await runner.up(empty_conn, folder=later)
    with pytest.raises(MigrationError, match="at 0005_fewer, newer"):
        await runner.pending(empty_conn, folder=folder)


def test_reading_migrations_with_a_missing_step_or_down_file_is_refused(folder):
    (folder / "0002_two.down.sql").unlink()
    with pytest.raises(MigrationError, match="0002_two has no file for down"):
        runner.read_migrations(folder)

    (folder / "0002_two.up.sql").rename(folder / "0003_two.up.sql")
    with pytest.raises(MigrationError, match="is in the place of version 2"):
        runner.read_migrations(folder)
