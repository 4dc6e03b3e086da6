"""Takes a backup of a running bank: a base backup of its database by `pg_basebackup`, then its files.

If requested, the log of the database is archived next to the backups, so that any later moment can be restored.
"""

import asyncio
import shlex
import shutil
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import msgspec

from billfold import __version__
from billfold.backup.folder import KEY_FILE, MANIFEST, STATE, Backup, BackupFolder, copy_state, write_about
from billfold.cli.context import CliError
from billfold.platform.clock import monotonic, wall_now
from billfold.platform.database.connection import Connection, connect
from billfold.platform.database.embedded_programs import PROGRAM_ENVIRONMENT, ServerUser, program
from billfold.platform.settings.settings import Settings

BytesProgress = Callable[[int, int | None], None]
"""Called with the number of bytes copied and, once it is known, the total."""
_POLL_SECONDS = 0.2
_ARCHIVED_SECONDS = 30.0
_LOST_MAX = "60s"
"""A quiet bank archives its log as often, so no more than this is lost with the disk."""
_ABOUT_BANK = """
SELECT (SELECT max(version) FROM schema_migration) AS schema_version, environment, key_check,
       current_setting('server_version_num')::int / 10000 AS postgres
  FROM bank
"""
_PROGRESS = "SELECT backup_streamed, backup_total FROM pg_stat_progress_basebackup"
_ARCHIVED = "SELECT last_archived_wal >= $1 FROM pg_stat_archiver"
_TIMELINE = "SELECT left(pg_walfile_name(pg_current_wal_lsn()), 8)"
_NO_ROOM = "No space left on device"


class _Source(NamedTuple):
    dsn: str
    settings: Settings
    lock: int


async def take_backup(
    dsn: str, settings: Settings, folder: BackupFolder, *, keep: int | None, progress: BytesProgress
) -> tuple[Backup, list[Backup]]:
    """Take a backup of the bank at `dsn`, which may be in use; return it and the removed ones. Raises CliError."""
    with folder.locked() as lock:
        made = await _take_backup(_Source(dsn, settings, lock), folder, progress)
        return made, folder.remove_older(keep) if keep else []


async def _take_backup(source: _Source, folder: BackupFolder, progress: BytesProgress) -> Backup:
    conn = await connect(source.dsn)
    try:
        began_at = wall_now()
        with folder.new(began_at) as partial:
            return await _fill_folder(source, conn, partial, began_at=began_at, progress=progress)
    except OSError as error:
        raise CliError(f"The backup cannot be written: {error}.", _room_for(folder.path)) from error
    finally:
        await conn.close()


async def _fill_folder(
    source: _Source, conn: Connection, partial: Path, *, began_at: datetime, progress: BytesProgress
) -> Backup:
    about = await conn.fetchrow(_ABOUT_BANK)
    if about is None or about["key_check"] is None:
        raise CliError("There is no bank of this release in the database.", "Run `billfold migrate up`.")
    await _copy_database(source, conn, partial, progress)
    ended_at = wall_now()
    await asyncio.to_thread(copy_state, source.settings, partial / STATE)
    backup = Backup(
        label=partial.stem,
        began_at=began_at,
        ended_at=ended_at,
        release=__version__,
        schema_version=about["schema_version"],
        postgres=about["postgres"],
        environment=about["environment"],
        key_check=about["key_check"].hex(),
        has_key=(partial / STATE / KEY_FILE).is_file(),
        first_segment=_first_segment(partial / MANIFEST),
        size_bytes=sum(each.stat().st_size for each in partial.rglob("*") if each.is_file()),
    )
    write_about(partial, backup)
    return backup


async def _copy_database(source: _Source, conn: Connection, target: Path, progress: BytesProgress) -> None:
    """Have the server send its files, compressed, with the log that makes them consistent and their checksums."""
    options = ("--format=tar", "--compress=client-gzip:1", "--wal-method=stream", "--checkpoint=fast")
    checked = "--manifest-checksums=SHA256"
    process = await asyncio.create_subprocess_exec(
        str(program("pg_basebackup")),
        *(f"--dbname={source.dsn}", f"--pgdata={target}", "--label=billfold", "--no-password", checked, *options),
        env=PROGRAM_ENVIRONMENT,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        pass_fds=(source.lock,),  # when we are killed, it continues for a moment
    )
    ended = asyncio.create_task(process.communicate())
    try:
        while not ended.done():
            await asyncio.wait([ended], timeout=_POLL_SECONDS)
            if row := await conn.fetchrow(_PROGRESS):
                progress(row["backup_streamed"] or 0, row["backup_total"])
        _, said = await ended
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        text = said.decode(errors="replace").strip()
        if _NO_ROOM in text:
            raise CliError(f"The disk of {target.parent} is full.", _room_for(target.parent))
        raise CliError(f"The database could not be copied: {text}", "See `billfold doctor`.")


def _room_for(path: Path) -> str:
    there = next(each for each in (path, *path.parents) if each.exists())
    return f"Free space there ({shutil.disk_usage(there).free // 2**20:,} MiB are free), or name another folder."


def _first_segment(manifest: Path) -> str:
    """Return the name of the log file with which the recovery of a base backup begins."""
    first = msgspec.json.decode(manifest.read_bytes())["WAL-Ranges"][0]
    high, low = first["Start-LSN"].split("/")
    return f"{first['Timeline']:08X}{int(high, 16):08X}{int(low, 16) >> 24:08X}"


async def archive_log(dsn: str, folder: BackupFolder, data_dir: Path) -> None:
    """Make the server archive its log next to the backups from now on. Raises CliError."""
    owner = ServerUser.of(data_dir, lambda _: None)
    with folder.locked():
        if not folder.wal.exists():
            folder.wal.mkdir(mode=0o700)
            owner.take(folder.wal)
        owner.allow_traversal(folder.wal)
    conn = await connect(dsn)
    try:
        if await conn.fetchval("SHOW archive_mode") != "on":
            raise CliError(
                "The database was started by an earlier release, which archives no log.",
                "Stop the bank, start it again, and repeat this command.",
            )
        if folder.has_log_beside(await conn.fetchval(_TIMELINE)):  # two banks restored from it have the same timeline
            raise CliError(f"{folder.wal} has the log of the bank before it was restored.", "Name a new folder.")
        await _set(conn, archive_command=_archive_command(folder.wal), archive_timeout=_LOST_MAX)
        await _await_archived(conn)
    finally:
        await conn.close()


async def archive_no_log(dsn: str) -> None:
    """Stop the server from archiving its log: only moments until now can be restored."""
    conn = await connect(dsn)
    try:
        await conn.execute("ALTER SYSTEM RESET archive_command")
        await conn.execute("ALTER SYSTEM RESET archive_timeout")
        await conn.execute("SELECT pg_reload_conf()")
    finally:
        await conn.close()


def _archive_command(wal: Path) -> str:
    """Return the shell command that archives a log file: durable, never overwriting, idempotent."""
    target, part = (shlex.quote(f"{wal}/").replace("%", "%%") + f"%f{end}" for end in ("", ".part"))
    copy = f"dd if=%p of={part} bs=1M conv=fsync 2>/dev/null && mv {part} {target}"
    return f"cmp -s %p {target} || {{ test ! -e {target} && {copy}; }}"


async def _set(conn: Connection, **values: str) -> None:
    for name, value in values.items():
        quoted = await conn.fetchval("SELECT quote_literal($1)", value)
        await conn.execute(f"ALTER SYSTEM SET {name} = {quoted}")
    await conn.execute("SELECT pg_reload_conf()")


async def _await_archived(conn: Connection) -> None:
    """Wait until the log has been archived up to now. Raises CliError when it is not."""
    await conn.execute("SELECT pg_create_restore_point('billfold backup')")  # an empty file is not archived
    segment = await conn.fetchval("SELECT pg_walfile_name(pg_switch_wal())")
    deadline = monotonic() + _ARCHIVED_SECONDS
    while not await conn.fetchval(_ARCHIVED, segment):
        if monotonic() > deadline:
            step = "See server.log in the database's folder; its user must be able to write to the backups."
            raise CliError(f"The log of the database is not archived: {segment}.", step)
        await asyncio.sleep(_POLL_SECONDS)
