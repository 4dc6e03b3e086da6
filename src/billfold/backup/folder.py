"""The folder of backups: one folder per backup, named by its label, and the archived log of the database next to them.

A backup gets its label when it is complete; an interrupted one ends in `.partial` and is removed with the next one.
"""

import fcntl
import re
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from billfold.cli.context import CliError
from billfold.platform.durable_files import make_durable
from billfold.platform.settings.settings import Settings


class Backup(msgspec.Struct, frozen=True, kw_only=True):
    """`billfold.json` of a backup. Instants are of the wall clock; the database begins to be whole at `ended_at`."""

    label: str
    began_at: datetime
    ended_at: datetime
    release: str
    schema_version: int
    postgres: int  # the major version
    environment: str
    key_check: str  # hexadecimal: tells whether a key is the bank's, and nothing about it
    has_key: bool  # the key file of a sandbox is among the files
    first_segment: str  # the log of the database is needed from this file on
    size_bytes: int


ABOUT = "billfold.json"
STATE = "state"
MANIFEST = "backup_manifest"
"""The files of the database with their checksums, as PostgreSQL writes it."""
_PARTIAL = ".partial"
_LEFT_OVER = re.compile(r"[0-9]{8}T[0-9]{6}Z(-[0-9]+)?\.partial\Z")
"""Matches our own partial backups: the operator's files in the folder may end in `.partial` too."""
_LOCK = "lock"
_SEGMENT_CHARS = 24


class BackupFolder:
    """One folder of backups."""

    def __init__(self, path: Path) -> None:
        self.path = path.expanduser().resolve()
        self.wal = self.path / "wal"

    def list_backups(self) -> list[Backup]:
        """Return the complete backups, the oldest first. Raises CliError for one that cannot be read."""
        found = []
        for about in sorted(self.path.glob(f"[0-9]*/{ABOUT}")):
            if about.parent.suffix == _PARTIAL:
                continue
            try:
                found.append(msgspec.json.decode(about.read_bytes(), type=Backup))
            except (OSError, msgspec.MsgspecError) as error:
                raise CliError(f"{about} cannot be read: {error}", "Name another backup with --backup.") from None
        return found

    def segments(self) -> list[Path]:
        """Return the archived files of the log, the oldest first."""
        return sorted(each for each in self.wal.glob("*") if len(each.name) == _SEGMENT_CHARS)

    def has_log_beside(self, timeline: str) -> bool:
        """Tell whether log of another timeline than this one (8 hexadecimal digits) is archived here."""
        return any(not each.name.startswith(timeline) for each in self.segments())

    @contextmanager
    def locked(self) -> Iterator[int]:
        """Lock the folder for writing; yield the lock, which a child that also writes inherits. Raises CliError."""
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            file = (self.path / _LOCK).open("a")
        except OSError as error:
            raise CliError(f"{self.path} cannot be written to: {error.strerror}.", "Name another folder.") from None
        with file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise CliError(f"Another backup writes to {self.path}.", "Wait until it is done.") from None
            yield file.fileno()

    @contextmanager
    def new(self, began_at: datetime) -> Iterator[Path]:
        """Yield the folder of a new backup; it counts as a backup once the block is left without an error."""
        for each in self.path.iterdir():
            if _LEFT_OVER.match(each.name):
                shutil.rmtree(each)
        label = self._free_label(began_at)
        partial = self.path / f"{label}{_PARTIAL}"
        partial.mkdir(mode=0o700)
        try:
            yield partial
            make_durable(partial)
            partial.rename(self.path / label)
            make_durable(self.path)
        except BaseException:  # Ctrl-C too
            shutil.rmtree(partial, ignore_errors=True)
            raise

    def remove_older(self, keep: int) -> list[Backup]:
        """Remove all but the newest backups, and what only they need of the log; return them. Only inside `alone`."""
        found = self.list_backups()
        removed = found[:-keep]
        for each in removed:
            partial = self.path / f"{each.label}{_PARTIAL}"
            (self.path / each.label).rename(partial)  # half a backup never counts as one
            shutil.rmtree(partial)
        if removed:
            oldest_needed = min(each.first_segment[8:] for each in found[-keep:])  # without the timeline
            for archived in self.wal.glob("*"):  # the log, and the marks where its backups began
                if archived.suffix != ".history" and archived.name[8:_SEGMENT_CHARS] < oldest_needed:
                    archived.unlink(missing_ok=True)
        return removed

    def _free_label(self, began_at: datetime) -> str:
        label = f"{began_at.astimezone(UTC):%Y%m%dT%H%M%SZ}"
        names = (label, *(f"{label}-{nth}" for nth in range(2, 100)))
        return next(name for name in names if not (self.path / name).exists())


def write_about(folder: Path, backup: Backup) -> None:
    """Write the manifest of a backup, its last file."""
    path = folder / ABOUT
    path.write_bytes(msgspec.json.format(msgspec.json.encode(backup)) + b"\n")
    make_durable(path)


KEY_FILE = "encryption.key"
FILES = "files"
_NOT_COPIED = ("postgres", "logs", "bank.paused")
"""The database, which is copied by its own tools, and the files of running processes."""
_SQLITE = ".sqlite"
_SQLITE_COMPANIONS = (".sqlite-wal", ".sqlite-shm")


def configured_places(settings: Settings) -> dict[str, Path]:
    """Return the files that are kept outside the state directory, by their names in it."""
    places = {FILES: settings.files_dir, "rails": settings.rails_dir, "audit-seals.txt": settings.audit_seals}
    return {name: path for name, path in places.items() if path is not None}


def check_apart(settings: Settings, backups: Path) -> None:
    """Refuse a folder of backups that would be copied into itself, or that holds what it backs up. Raises CliError.

    The seals are a single file and may lie on the disk of the backups.
    """
    for place in (settings.state_dir, settings.files_dir, settings.rails_dir):
        kept = None if place is None else place.expanduser().resolve()
        if kept is not None and (backups.is_relative_to(kept) or kept.is_relative_to(backups)):
            raise CliError(f"{backups} is not apart from {kept}, which is backed up.", "Name a folder elsewhere.")


def copy_state(settings: Settings, target: Path) -> None:
    """Copy everything but the database into a folder; the bank may be in use."""
    target.mkdir(mode=0o700)
    places = configured_places(settings)
    sources = {each.name: each for each in _state_of(settings.state_dir) if each.name not in places}
    for name, source in (sources | places).items():
        copy_tree(source, target / name)


def copy_tree(source: Path, target: Path) -> None:
    """Copy a file or a folder. Files that vanish in the meantime are left out; existing files stay as they are."""
    if source.is_dir():
        target.mkdir(mode=0o700, parents=True, exist_ok=True)
        for each in _entries(source):
            copy_tree(each, target / each.name)
    elif source.is_file() and not target.exists():
        _copy_file(source, target)


def _state_of(state_dir: Path) -> Iterator[Path]:
    for each in _entries(state_dir):
        if each.name not in _NOT_COPIED and not each.name.startswith("postgres.") and each.suffix != ".lock":
            yield each


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except FileNotFoundError:
        return []


def _copy_file(source: Path, target: Path) -> None:
    if source.name.endswith(_SQLITE_COMPANIONS):
        return
    try:
        if source.suffix == _SQLITE:
            with closing(sqlite3.connect(source)) as old, closing(sqlite3.connect(target)) as new:
                old.backup(new)
            target.chmod(source.stat().st_mode)
        else:
            shutil.copy2(source, target)
    except FileNotFoundError:  # a rail took its file, a part of a report was purged
        return
