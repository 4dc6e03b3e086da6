"""Applies the numbered SQL files of this package, and reverts them.

`0001_baseline.up.sql` leads from nothing to version 1 and `0001_baseline.down.sql` back. Each file runs
in one transaction together with its row in `schema_migration`. An advisory lock lets one process at
a time migrate a database. A file that was applied and then edited is refused, never guessed at.
The first lines of a file are options, read by `steps`. No statement waits long for a lock, because later
statements would wait behind it: it is canceled and tried again.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import NamedTuple

import asyncpg

from billfold.platform.database.connection import Connection
from billfold.platform.database.distribution import SHARD_BATCH, is_distributed

_FILE = re.compile(r"(?P<number>\d{4})_(?P<title>[a-z0-9_]+)\.(?P<way>up|down)\.sql")
_STOP = re.compile(r"^-- Needs a stop: (.+)", re.MULTILINE)
_CONTRACTS = re.compile(r"^-- Contracts: schema (\d{4})", re.MULTILINE)
_OUTSIDE = re.compile(r"^-- Outside a transaction", re.MULTILINE)
_STATEMENT = re.compile(r"(?:--[^\n]*|\$(\w*)\$.*?\$\1\$|'[^']*'|[^;])+", re.DOTALL)
_COMMENTS_BEFORE = re.compile(r"\A(?:\s+|--[^\n]*)*")
_BUILT_INDEX = re.compile(
    r"CREATE\s+(?:UNIQUE\s+)?INDEX\s+CONCURRENTLY\s+(?:IF\s+NOT\s+EXISTS\s+)?(\w+)", re.IGNORECASE
)


class MigrationError(RuntimeError):
    """The files and the database do not match; the text gives the difference and the reason, `next_step` the remedy."""

    def __init__(self, text: str, next_step: str = "Use the release that the database belongs to.") -> None:
        super().__init__(text)
        self.next_step = next_step


@dataclass(frozen=True, slots=True)
class Migration:
    """One step of the schema: its up and down migrations."""

    version: int
    name: str
    up: str
    down: str

    @property
    def sha256(self) -> str:
        """The fingerprint of the up migration, as kept in `schema_migration`."""
        return sha256(self.up.encode()).hexdigest()

    @property
    def stop_reason(self) -> str:
        """Return why the bank has to be stopped, or "" if it may be in use."""
        found = _STOP.search(self.up)
        return found[1].strip().rstrip(".") if found else ""

    @property
    def oldest_release(self) -> int:
        """The oldest schema version whose release may run on this one; 0: running processes may continue."""
        if self.stop_reason:
            return self.version
        found = _CONTRACTS.search(self.up)
        return int(found[1]) if found else 0

    @property
    def in_transaction(self) -> bool:
        """Return whether it is applied in one transaction."""
        return _OUTSIDE.search(self.up) is None

    @property
    def statements(self) -> list[str]:
        """The statements of a step, without the comments before each."""
        pieces = (_COMMENTS_BEFORE.sub("", match[0]).strip() for match in _STATEMENT.finditer(self.up))
        return [piece for piece in pieces if piece]

    @staticmethod
    def built_index(statement: str) -> str | None:
        """Return the index that a statement builds while its table is in use, or None."""
        found = _BUILT_INDEX.match(statement)
        return found[1] if found else None


def read_migrations(folder: Traversable | None = None) -> list[Migration]:
    """Return the steps in `folder` (this package) in order.

    Raises MigrationError if a number is missing or taken twice, or a step lacks one of its files.
    """
    texts: dict[str, dict[str, str]] = {}
    for file in (folder or files("billfold.migrations")).iterdir():
        if match := _FILE.fullmatch(file.name):
            name = f"{match['number']}_{match['title']}"
            texts.setdefault(name, {})[match["way"]] = file.read_text(encoding="utf-8")
    steps = []
    for version, (name, ways) in enumerate(sorted(texts.items()), start=1):
        if int(name[:4]) != version:
            raise MigrationError(f"{name} is in the place of version {version}")
        if ways.keys() != {"up", "down"}:
            raise MigrationError(f"{name} has no file for {'up' if 'down' in ways else 'down'}")
        steps.append(Migration(version, name, ways["up"], down=ways["down"]))
    return steps


_LOCK = 0x62696C6C  # "bill"
_STEP_SECONDS = 3600.0  # for one file that others wait for; no limit while the bank is stopped
_WAIT_SECONDS = 3600.0  # for another process that migrates

_POLL_SECONDS = 0.2
LOCK_WAIT = "2s"
# The nodes of a cluster, if there is one, wait no longer either.
_WAIT_BRIEFLY = "SET LOCAL citus.propagate_set_commands = 'local'; SET LOCAL lock_timeout = '{}'"
_LOCK_TRIES = 30
_PAUSE_SECONDS = 1.0

_HISTORY_TABLE = """
CREATE TABLE IF NOT EXISTS schema_migration (
  version         int PRIMARY KEY CHECK (version > 0),
  name            text NOT NULL,
  applied_at      timestamptz NOT NULL DEFAULT now(),
  sha256          text NOT NULL,
  oldest_release  int NOT NULL DEFAULT 0
)
"""
_HISTORY = "SELECT version, name, sha256, oldest_release FROM schema_migration ORDER BY version"
# Before the first release the schema grew by other files, of which 0001_baseline is the sum.
_IS_UNRELEASED = "SELECT EXISTS (SELECT 1 FROM schema_migration WHERE version = 1 AND name = '0001_house')"
_START_OVER = (
    "Start over with an empty database; in a sandbox run `billfold sandbox --fresh`, or stop it and remove its state"
    " directory. Its forks and backups cannot be used either."
)
_RECORD = "INSERT INTO schema_migration (version, name, sha256, oldest_release) VALUES ($1, $2, $3, $4)"
# The comment of the table is the newest version of which everything lies on its nodes.
_UNDISTRIBUTED = f"""
SELECT m.name FROM schema_migration m JOIN pg_class c ON c.oid = to_regclass('{SHARD_BATCH}')
 WHERE m.version <= $1 AND m.version > coalesce(obj_description(c.oid, 'pg_class'), '0')::int ORDER BY m.version
"""
_HALF_BUILT = "SELECT NOT indisvalid FROM pg_index WHERE indexrelid = to_regclass($1)"

# A setting of the database itself: a copy of it, such as a fork or its restored dump, needs it again. A table that the
# application created there would hide one from other clients that a pooler gives the same session.
_NO_TEMPORARY_TABLES = """
DO $$ BEGIN
  IF pg_has_role((SELECT datdba FROM pg_database WHERE datname = current_database()), 'USAGE') THEN
    EXECUTE format('REVOKE TEMPORARY ON DATABASE %I FROM PUBLIC', current_database());
  END IF;
END $$
"""
Progress = Callable[[str], None]


def ignore(_: str) -> None:
    """Report nothing."""


class _Applied(NamedTuple):
    name: str
    sha256: str
    oldest_release: int


async def up(conn: "Connection", report: Progress = ignore, *, folder: Traversable | None = None) -> list[str]:
    """Apply the pending steps and return their names, oldest first.

    `report` is called with each before it runs. A file that fails leaves the database in the state of the file
    before it. Raises MigrationError if an applied file was edited, if the database accepts no release so
    old or is from before the first one, or if a lock cannot be acquired.
    """
    steps = read_migrations(folder)
    applied_names = []
    async with exclusive(conn):
        await conn.execute(_HISTORY_TABLE)
        for step in await _pending_steps(conn, steps):
            report(f"Migrating to {step.name}")
            await (_apply_in_transaction if step.in_transaction else _apply_statements)(conn, step, report)
            applied_names.append(step.name)
        await conn.execute(_NO_TEMPORARY_TABLES)
    return applied_names


async def _apply_in_transaction(conn: "Connection", step: Migration, report: Progress) -> None:
    # A node of a cluster is sent the text that a change of a table is part of, and takes one statement at a time.
    texts = step.statements if await is_distributed(conn) else [step.up]

    async def apply() -> None:
        async with conn.transaction():
            await conn.execute(_WAIT_BRIEFLY.format(LOCK_WAIT))
            for text in texts:
                await conn.execute(text, timeout=_limit_of(step))
            await _record(conn, step)

    await _until_locked(step.name, apply, report)


async def _apply_statements(conn: "Connection", step: Migration, report: Progress) -> None:
    """Run one statement after the other, each in its own transaction: after a crash all are run again."""
    for statement in step.statements:
        index = step.built_index(statement)
        half_built = index and await conn.fetchval(_HALF_BUILT, index)
        if half_built is False:
            continue  # Citus would mark it as half built
        if half_built:
            report(f"Removing {index}, which was interrupted")
            await conn.execute(f"DROP INDEX CONCURRENTLY {index}", timeout=_limit_of(step))
        if statement.startswith("ALTER TABLE"):
            await run_briefly(conn, report, step.name, statement, timeout=_limit_of(step))
            continue
        # A statement that waits for others without blocking them may wait.
        wait = "0" if "CONCURRENTLY" in statement.upper() else LOCK_WAIT
        await conn.execute(f"SET lock_timeout = '{wait}'")
        try:
            await _until_locked(step.name, partial(conn.execute, statement, timeout=_limit_of(step)), report)
        finally:
            await conn.execute("RESET lock_timeout")
    await _record(conn, step)


async def run_briefly(
    conn: "Connection", report: Progress, name: str, statement: str, *values: str, timeout: float | None = _STEP_SECONDS
) -> None:
    """Run a statement in a transaction that waits briefly for locks, on the nodes of a cluster too, until it has them.

    In a transaction of the caller it waits. Raises MigrationError after many tries.
    """
    apply = partial(conn.execute, statement, *values, timeout=timeout)

    async def attempt() -> None:
        async with conn.transaction():
            await conn.execute(_WAIT_BRIEFLY.format(LOCK_WAIT))
            await apply()

    await (apply() if conn.is_in_transaction() else _until_locked(name, attempt, report))


async def _record(conn: "Connection", step: Migration) -> None:
    await conn.execute(_RECORD, step.version, step.name, step.sha256, step.oldest_release)


async def _until_locked(name: str, apply: Callable[[], Awaitable[object]], report: Progress) -> None:
    """Retry until the locks are acquired within the time that others may wait. Raises MigrationError."""
    for _ in range(_LOCK_TRIES):
        try:
            await apply()
        except (asyncpg.LockNotAvailableError, asyncpg.DeadlockDetectedError):
            report(f"{name} waits for a lock; it is tried again")
            await asyncio.sleep(_PAUSE_SECONDS)
        else:
            return
    raise MigrationError(
        f"{name} did not get its lock in {_LOCK_TRIES} tries: end the long transaction that `SELECT pid,"
        " xact_start, query FROM pg_stat_activity ORDER BY xact_start` shows, and repeat"
    )


def _limit_of(step: Migration) -> float | None:
    return None if step.stop_reason else _STEP_SECONDS


async def down(conn: "Connection", to: int = 0, *, folder: Traversable | None = None) -> list[str]:
    """Revert every step above version `to` and return their names, newest first.

    The data of these steps is lost. Raises MigrationError if the down file of one is missing.
    """
    steps = {step.version: step for step in read_migrations(folder)}
    applied_names = []
    async with exclusive(conn):
        for version, (name, *_) in reversed((await _history(conn)).items()):
            if version <= to:
                break
            if version not in steps:
                raise MigrationError(f"{name} is applied, but its down file is missing")
            async with conn.transaction():
                await conn.execute(steps[version].down, timeout=_limit_of(steps[version]))
                await conn.execute("DELETE FROM schema_migration WHERE version = $1", version)
            applied_names.append(name)
    return applied_names


async def pending(conn: "Connection", *, folder: Traversable | None = None) -> list[str]:
    """Return the names of the steps `up` would apply, or distribute. Changes nothing; raises like `up`."""
    steps = [step.name for step in await plan(conn, folder=folder)]
    return steps or [name for (name,) in await conn.fetch(_UNDISTRIBUTED, len(read_migrations(folder)))]


async def plan(conn: "Connection", *, folder: Traversable | None = None) -> list[Migration]:
    """Return the steps that `up` would apply. Changes nothing; raises like `up`."""
    return await _pending_steps(conn, read_migrations(folder))


async def is_empty(conn: "Connection") -> bool:
    """Tell whether nothing was ever applied, so that no bank can be in use."""
    return not await _history(conn)


async def _pending_steps(conn: "Connection", steps: Sequence[Migration]) -> list[Migration]:
    applied = await _history(conn)
    for step, (version, (name, fingerprint, _)) in zip(steps, applied.items(), strict=False):
        if (step.version, step.name, step.sha256) != (version, name, fingerprint):
            raise MigrationError(
                f"{name} was applied, but {step.name} has changed since; "
                "restore the file and put the change into a new one"
            )
    newer = list(applied.values())[len(steps) :]
    if newer and max(each.oldest_release for each in newer) > len(steps):
        raise MigrationError(f"the database is at {newer[-1].name}, newer than this release of Billfold may use")
    return list(steps[len(applied) :])


async def _history(conn: "Connection") -> dict[int, _Applied]:
    """Return the applied steps, by version, oldest first. Raises MigrationError for a schema before the first one."""
    if await conn.fetchval("SELECT to_regclass('schema_migration')") is None:
        return {}
    if await conn.fetchval(_IS_UNRELEASED):
        raise MigrationError(
            "The schema of this database is from before release 0.1.0 and cannot be upgraded", _START_OVER
        )
    rows = await conn.fetch(_HISTORY)
    return {row["version"]: _Applied(row["name"], row["sha256"], row["oldest_release"]) for row in rows}


@asynccontextmanager
async def exclusive(conn: "Connection") -> AsyncIterator[None]:
    """Lock out every other process that would migrate this database."""
    # A process waiting inside a statement would block an index that is built concurrently.
    async with asyncio.timeout(_WAIT_SECONDS):
        while not await conn.fetchval("SELECT pg_try_advisory_lock($1)", _LOCK):
            await asyncio.sleep(_POLL_SECONDS)
    try:
        yield
    finally:
        await conn.execute("SELECT pg_advisory_unlock($1)", _LOCK)
