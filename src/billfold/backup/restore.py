"""Restores a bank from its backup, at a chosen moment or at the latest.

Everything is built in a folder next to the state directory, which becomes it in one step when it is complete. The
remains of an interrupted restore are removed by the next one.
"""

import hashlib
import os
import shlex
import shutil
import tarfile
import zlib
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path

import msgspec

from billfold.backup.folder import KEY_FILE, MANIFEST, STATE, Backup, BackupFolder, configured_places, copy_tree
from billfold.cli.context import CliError
from billfold.documents.ports import FileStore
from billfold.platform.clock import wall_now
from billfold.platform.crypto import KEY_BYTES, Vault
from billfold.platform.database import embedded
from billfold.platform.database.connection import Connection
from billfold.platform.database.embedded_programs import MAJOR, EmbeddedPostgresError, ServerUser
from billfold.platform.settings.settings import Settings

StepProgress = Callable[[str, int, int], None]
"""Called with a step, its progress, and its total (bytes; 0 of 0 if unknown)."""
_CHECKSUM_BEGINS = b'"Manifest-Checksum"'
_EARLIER = "Restore an earlier one: --backup LABEL; `billfold backups DIR` lists them."


class _File(msgspec.Struct, rename="pascal"):
    checksum: str
    path: str | None = None
    encoded_path: str | None = msgspec.field(name="Encoded-Path", default=None)


class _Manifest(msgspec.Struct):
    files: list[_File] = msgspec.field(name="Files")
    checksum: str = msgspec.field(name="Manifest-Checksum")


def unpack_database(source: Path, data_dir: Path, progress: StepProgress) -> None:
    """Unpack the database of a backup with the log that makes it consistent. Raises CliError if damaged, OSError."""
    try:
        expected = _read_manifest(source / MANIFEST)
        data_dir.mkdir(mode=0o700)
        _unpack(source / "base.tar.gz", data_dir, expected, progress)
        if expected:
            raise _damaged_backup(f"{next(iter(expected))} is missing")
        _unpack(source / "pg_wal.tar.gz", data_dir / "pg_wal", {}, progress)
    except (tarfile.TarError, EOFError, zlib.error, msgspec.MsgspecError) as error:
        raise _damaged_backup(str(error)) from error
    except FileNotFoundError as error:
        raise _damaged_backup(f"{error.filename} is missing") from error


def _read_manifest(path: Path) -> dict[str, str]:
    """Return the SHA-256 of each file by its path."""
    raw = path.read_bytes()
    manifest = msgspec.json.decode(raw, type=_Manifest)
    if hashlib.sha256(raw[: raw.index(_CHECKSUM_BEGINS)]).hexdigest() != manifest.checksum:
        raise _damaged_backup(f"{MANIFEST} was altered")
    return {each.path or bytes.fromhex(each.encoded_path or "").decode(): each.checksum for each in manifest.files}


def _unpack(archive: Path, target: Path, expected: dict[str, str], progress: StepProgress) -> None:
    """Unpack the expected files in the folder and no others; files that are found leave `expected`."""
    size = archive.stat().st_size
    with archive.open("rb") as raw, tarfile.open(fileobj=raw, mode="r:gz") as tar:
        for member in tar:
            tar.extract(member, target, filter="data")
            checksum = expected.pop(member.name, None)
            if checksum is not None:
                with (target / member.name).open("rb") as file:
                    if hashlib.file_digest(file, "sha256").hexdigest() != checksum:
                        raise _damaged_backup(f"{member.name} is not as it was written")
            progress(f"Unpacking {archive.name.partition('.')[0]}", raw.tell(), size)


def _damaged_backup(what: str) -> CliError:
    return CliError(f"The backup is damaged: {what}.", _EARLIER)


_RESTORING = ".restoring"
_NO_KEY = "Put the bank's encryption.key into the folder `state` of the backup, or set BILLFOLD_ENCRYPTION_KEY."
_NOT_REACHED = "recovery ended before configured recovery target was reached"
_AUTO = "postgresql.auto.conf"
_REPLAY_SECONDS = 86_400
"""A busy bank archives up to 23 GB of log a day, and its backup may be weeks old."""


def choose_backup(folder: BackupFolder, label: str | None, to: datetime | None) -> Backup:
    """Return the named backup, or the newest, or the newest completed before a moment. Raises CliError."""
    found = folder.list_backups()
    if not found:
        raise CliError(f"There is no backup in {folder.path}.", "Make one: `billfold backup DIR`.")
    if label is not None:
        found = [each for each in found if each.label == label]
        if not found:
            raise CliError(f"There is no backup {label}.", "`billfold backups DIR` lists them.")
    whole = [each for each in found if to is None or each.ended_at <= to]
    if not whole:
        earliest = min(each.ended_at for each in found)
        raise CliError(f"No backup goes back so far: the earliest moment is {earliest.isoformat()}.", "Choose a later.")
    return whole[-1]


def check_restorable(backup: Backup, settings: Settings, folder: BackupFolder, *, schema_version: int) -> None:
    """Refuse a restore that would overwrite a bank, or that could not be opened afterwards. Raises CliError."""
    state_dir = settings.state_dir
    if (state_dir / "postgres").exists():
        running = embedded.find_running(state_dir, "postgres")
        raise CliError(
            f"There is a bank in {state_dir}{', and its database runs' if running else ''}. It is never overwritten.",
            f"{'Stop it, then move' if running else 'Move'} it away: mv {state_dir} {state_dir}.old",
        )
    if state_dir.exists() and any(state_dir.iterdir()):
        raise CliError(f"{state_dir} is not empty.", "Move it away, or set BILLFOLD_STATE_DIR to another folder.")
    if backup.postgres != MAJOR:
        raise CliError(
            f"The backup is of PostgreSQL {backup.postgres}, this release has {MAJOR}.",
            f"Restore with Billfold {backup.release}.",
        )
    if backup.schema_version > schema_version:
        raise CliError(
            f"The backup is of a newer release (schema {backup.schema_version}, this one has {schema_version}).",
            f"Restore with Billfold {backup.release} or a later one.",
        )
    _check_key(backup, settings, folder)


def _check_key(backup: Backup, settings: Settings, folder: BackupFolder) -> None:
    """Check before anything is written that the key opens the bank. Raises CliError."""
    key = settings.encryption_key
    if key is None:
        path = folder.path / backup.label / STATE / KEY_FILE
        key = path.read_bytes() if path.is_file() else b""
    if len(key) != KEY_BYTES:
        raise CliError("The key of the bank is not in the backup.", _NO_KEY)
    if not Vault(key, retired=settings.retired_encryption_keys).has_key_of(bytes.fromhex(backup.key_check)):
        raise CliError("The encryption key is not the key of the bank in the backup.", _NO_KEY)


def restore_files(
    backup: Backup, settings: Settings, folder: BackupFolder, *, to: datetime | None, progress: StepProgress
) -> None:
    """Restore the database and the other files. Raises CliError."""
    state_dir = settings.state_dir.expanduser().resolve()
    work_dir = state_dir.with_name(f"{state_dir.name}{_RESTORING}")
    source = folder.path / backup.label
    remove_left_over(work_dir)
    try:
        work_dir.mkdir(mode=0o755, parents=True)
        data_dir = work_dir / "postgres"
        unpack_database(source, data_dir, progress)
        progress("Replaying the log", 0, 0)
        replay_log(data_dir, folder.wal, to)
        progress("Copying files", 0, 0)
        _put_files(source / STATE, work_dir, settings)
        if state_dir.exists():
            state_dir.rmdir()  # it is empty
        work_dir.rename(state_dir)
    except OSError as error:
        remove_left_over(work_dir)
        raise CliError(f"The backup cannot be restored: {error}.", "Free space there, or see the error.") from error
    except BaseException:  # Ctrl-C too
        remove_left_over(work_dir)
        raise


def replay_log(data_dir: Path, wal: Path, to: datetime | None) -> None:
    """Start a server on the files, have it replay the log up to a moment, and stop it. Raises CliError."""
    archived = f"cp {_shell(wal)}/%f %p" if wal.is_dir() else "false"
    lines = [f"restore_command = '{_quoted(archived)}'", "hot_standby = off"]
    if to is not None:
        lines += [f"recovery_target_time = '{to.isoformat()}'", "recovery_target_action = 'promote'"]
    (data_dir / "recovery.signal").touch()
    for left_over in (data_dir / "server.log", *data_dir.glob(".s.PGSQL.*")):  # of the server that was backed up
        left_over.unlink(missing_ok=True)
    (data_dir / _AUTO).write_text("\n".join([*lines, ""]), encoding="utf-8")
    owner = _give_to_server_user(data_dir)
    if wal.is_dir():
        owner.allow_traversal(wal)
    try:
        server = embedded.start(data_dir.parent, seconds=_REPLAY_SECONDS)
    except EmbeddedPostgresError as error:
        log = data_dir / "server.log"
        if log.exists() and _NOT_REACHED in log.read_text(encoding="utf-8", errors="replace"):
            raise CliError(
                f"The archived log does not reach {to}.", "Choose an earlier moment, or leave --to out to restore all."
            ) from error
        raise CliError(f"The database could not be recovered: {error}", "Restore an earlier backup.") from error
    embedded.stop(server)
    (data_dir / _AUTO).write_text("", encoding="utf-8")
    for left_over in data_dir.parent.glob("postgres.*"):
        left_over.unlink()


def remove_left_over(work_dir: Path) -> None:
    """Remove the remains of an interrupted restore, and stop its server."""
    data_dir = work_dir / "postgres"
    if (data_dir / "postmaster.pid").exists():
        with suppress(EmbeddedPostgresError):  # it has ended
            ServerUser.of(data_dir, lambda _: None).run("pg_ctl", "stop", "-D", str(data_dir), "-m", "immediate", "-w")
    shutil.rmtree(work_dir, ignore_errors=True)


def _give_to_server_user(data_dir: Path) -> ServerUser:
    """Make the server's user the owner of the files."""
    owner = ServerUser.of(data_dir.parent / "none", lambda _: None)
    for folder, _, names in os.walk(data_dir):
        for path in (Path(folder), *(Path(folder) / name for name in names)):
            owner.take(path)
            path.chmod(0o700 if path.is_dir() else 0o600)
    return owner


def _put_files(source: Path, work_dir: Path, settings: Settings) -> None:
    """Copy everything but the database to its place in the settings; existing files stay."""
    places = configured_places(settings)
    for each in source.iterdir():
        copy_tree(each, places.get(each.name, work_dir / each.name))


def _shell(path: Path) -> str:
    return shlex.quote(str(path)).replace("%", "%%")


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace("'", "''")


_NAMED = "SELECT file_key FROM document WHERE file_key IS NOT NULL UNION ALL SELECT key FROM report_file_part"


async def count_missing_files(conn: Connection, files: FileStore) -> int:
    """Return how many documents and parts of reports were uploaded or made after the files were copied."""
    kept = set(await files.list_stored(wall_now() + timedelta(days=1)))
    return sum(row["file_key"] not in kept for row in await conn.fetch(_NAMED))
