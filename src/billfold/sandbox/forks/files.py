"""The files of a sandbox bank: folders, single files and SQLite databases, copied aside and put into place.

What differs between two starts of a sandbox (ports, certificates, keys made once) is not among them.
"""

import shutil
import sqlite3
from collections.abc import Mapping
from contextlib import closing, suppress
from pathlib import Path

_NEXT = ".next"
_SQLITE = ".sqlite"
_SQLITE_COMPANIONS = ("-wal", "-shm")


class BankFiles:
    """The files of one bank by the names that their copies have. What is missing is copied as empty."""

    def __init__(self, *, folders: Mapping[str, Path], files: Mapping[str, Path]) -> None:
        self._folders, self._places = frozenset(folders), {**folders, **files}

    def copy(self, target: Path) -> None:
        """Copy everything into a folder. SQLite databases may be in use."""
        target.mkdir(parents=True)
        for name, place in self._places.items():
            self._copy(name, place, target / name)

    def stage(self, copies: Path) -> None:
        """Put what a folder of copies has beside the files that it is to replace."""
        self.discard()
        for name, place in self._places.items():
            place.parent.mkdir(parents=True, exist_ok=True)
            self._copy(name, copies / name, _next(place))

    def swap(self) -> None:
        """Put what was staged into place. What an interrupted swap left over is completed."""
        for place in self._places.values():
            if not _next(place).exists():
                continue
            for each in _SQLITE_COMPANIONS if place.suffix == _SQLITE else ():
                place.with_name(place.name + each).unlink(missing_ok=True)
            if place.is_dir():
                shutil.rmtree(place)
            _next(place).replace(place)

    def discard(self) -> None:
        """Remove what was staged."""
        for place in self._places.values():
            with suppress(FileNotFoundError):
                _next(place).unlink() if _next(place).is_file() else shutil.rmtree(_next(place))

    def size(self) -> int:
        """Return the bytes of everything."""
        files = [each for place in self._places.values() for each in (place, *place.rglob("*")) if each.is_file()]
        return sum(each.stat().st_size for each in files)

    def _copy(self, name: str, source: Path, target: Path) -> None:
        if name not in self._folders:
            _copy_file(source, target)
        elif source.is_dir():
            shutil.copytree(source, target, symlinks=True)
        else:
            target.mkdir()


def _next(place: Path) -> Path:
    return place.with_name(place.name + _NEXT)


def _copy_file(source: Path, target: Path) -> None:
    if not source.is_file():
        target.touch(mode=0o600)
    elif source.suffix == _SQLITE:
        with closing(sqlite3.connect(source)) as old, closing(sqlite3.connect(target)) as new:
            old.backup(new)
        target.chmod(source.stat().st_mode)
    else:
        shutil.copy2(source, target)
