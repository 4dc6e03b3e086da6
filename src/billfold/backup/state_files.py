"""What a bank keeps beside its database: documents, rail files, seals, the keys of a sandbox.

Uploaded documents are written before the row that names them and never changed: copied after the database, every
row of it has its file.
"""

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from billfold.cli.context import CliError
from billfold.platform.settings.settings import Settings

KEY_FILE = "encryption.key"
FILES = "files"
_NOT_COPIED = ("postgres", "logs", "bank.paused")
"""The database, which is copied by its own means, and what belongs to running processes."""
_SQLITE = ".sqlite"
_SQLITE_COMPANIONS = (".sqlite-wal", ".sqlite-shm")


def configured_places(settings: Settings) -> dict[str, Path]:
    """Return what is kept elsewhere than in the state directory, by the names that it has there."""
    places = {FILES: settings.files_dir, "rails": settings.rails_dir, "audit-seals.txt": settings.audit_seals}
    return {name: path for name, path in places.items() if path is not None}


def check_apart(settings: Settings, backups: Path) -> None:
    """Refuse a folder of backups that would be copied into itself, or holds what it backs up. Raises CliError.

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
    """Copy a file or a folder. What vanishes in the meantime is left out; a file that is there stays as it is."""
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
