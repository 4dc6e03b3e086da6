"""Applies the numbered SQL files of this package, and takes them back.

`0001_house.up.sql` leads from nothing to version 1 and `0001_house.down.sql` back. Each file runs
in one transaction together with its row in `schema_migration`. An advisory lock lets one process at
a time migrate a database. A file that was applied and then edited is refused, never guessed at.
"""

import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from billfold.platform.database.pool import Connection

_FILE = re.compile(r"(?P<number>\d{4})_(?P<title>[a-z0-9_]+)\.(?P<way>up|down)\.sql")
_LOCK = 0x62696C6C  # "bill"
_TIMEOUT_SECONDS = 3600.0  # for one file, and for another process that migrates

_HISTORY_TABLE = """
CREATE TABLE IF NOT EXISTS schema_migration (
  version     int PRIMARY KEY CHECK (version > 0),
  name        text NOT NULL,
  applied_at  timestamptz NOT NULL DEFAULT now(),
  sha256      text NOT NULL
)
"""


class MigrationError(RuntimeError):
    """The files and the database do not belong together; the text says which and why."""


@dataclass(frozen=True, slots=True)
class Migration:
    """One step of the schema: the way up, and the way back."""

    version: int
    name: str
    up: str
    down: str

    @property
    def sha256(self) -> str:
        """The fingerprint of the way up, as kept in `schema_migration`."""
        return sha256(self.up.encode()).hexdigest()


def read_migrations(folder: Traversable | None = None) -> list[Migration]:
    """Return the steps in `folder` (this package) in order.

    Raises MigrationError when a number is missing or taken twice, or a step lacks one of its ways.
    """
    texts: dict[str, dict[str, str]] = {}
    for file in (folder or files("billfold.migrations")).iterdir():
        if match := _FILE.fullmatch(file.name):
            name = f"{match['number']}_{match['title']}"
            texts.setdefault(name, {})[match["way"]] = file.read_text(encoding="utf-8")
    steps = []
    for version, (name, ways) in enumerate(sorted(texts.items()), start=1):
        if int(name[:4]) != version:
            raise MigrationError(f"{name} stands where version {version} is expected")
        if ways.keys() != {"up", "down"}:
            raise MigrationError(f"{name} has no way {'up' if 'down' in ways else 'down'}")
        steps.append(Migration(version, name, ways["up"], down=ways["down"]))
    return steps


async def up(
    conn: "Connection", progress: Callable[[str], None] | None = None, *, folder: Traversable | None = None
) -> list[str]:
    """Apply what is pending and return its names, oldest first.

    `progress` hears of each before it runs. A file that fails leaves the database as the file
    before it left it. Raises MigrationError when an applied file was edited, or the database is
    newer than the files.
    """
    steps = read_migrations(folder)
    applied_names = []
    async with _exclusive(conn):
        await conn.execute(_HISTORY_TABLE)
        for step in await _pending_steps(conn, steps):
            if progress:
                progress(f"Migrating to {step.name}")
            async with conn.transaction():
                await conn.execute(step.up, timeout=_TIMEOUT_SECONDS)
                await conn.execute(
                    "INSERT INTO schema_migration (version, name, sha256) VALUES ($1, $2, $3)",
                    step.version,
                    step.name,
                    step.sha256,
                )
            applied_names.append(step.name)
    return applied_names


async def down(conn: "Connection", to: int = 0, *, folder: Traversable | None = None) -> list[str]:
    """Take back every step above version `to` and return their names, newest first.

    What the steps held is lost. Raises MigrationError when the way down of one is not here.
    """
    steps = {step.version: step for step in read_migrations(folder)}
    applied_names = []
    async with _exclusive(conn):
        for version, (name, _) in reversed((await _history(conn)).items()):
            if version <= to:
                break
            if version not in steps:
                raise MigrationError(f"{name} is applied, but its way down is not here")
            async with conn.transaction():
                await conn.execute(steps[version].down, timeout=_TIMEOUT_SECONDS)
                await conn.execute("DELETE FROM schema_migration WHERE version = $1", version)
            applied_names.append(name)
    return applied_names


async def pending(conn: "Connection", *, folder: Traversable | None = None) -> list[str]:
    """Return the names of the steps `up` would apply. Changes nothing; raises as `up` does."""
    return [step.name for step in await _pending_steps(conn, read_migrations(folder))]


async def _pending_steps(conn: "Connection", steps: list[Migration]) -> list[Migration]:
    applied = await _history(conn)
    for step, (version, (name, fingerprint)) in zip(steps, applied.items(), strict=False):
        if (step.version, step.name, step.sha256) != (version, name, fingerprint):
            raise MigrationError(
                f"{name} was applied, but {step.name} reads otherwise now; "
                "restore the file and put the change into a new one"
            )
    if len(applied) > len(steps):
        newest, _ = list(applied.values())[-1]
        raise MigrationError(f"the database is at {newest}, newer than this release of Billfold")
    return steps[len(applied) :]


async def _history(conn: "Connection") -> dict[int, tuple[str, str]]:
    """Return name and fingerprint of what is applied, by version, oldest first."""
    if await conn.fetchval("SELECT to_regclass('schema_migration')") is None:
        return {}
    rows = await conn.fetch("SELECT version, name, sha256 FROM schema_migration ORDER BY version")
    return {row["version"]: (row["name"], row["sha256"]) for row in rows}


@asynccontextmanager
async def _exclusive(conn: "Connection") -> AsyncIterator[None]:
    """Hold off every other process that would migrate this database."""
    await conn.execute("SELECT pg_advisory_lock($1)", _LOCK, timeout=_TIMEOUT_SECONDS)
    try:
        yield
    finally:
        await conn.execute("SELECT pg_advisory_unlock($1)", _LOCK)
