"""An archive that is a file: lines are added at its end and reach the disk before it says so."""

import asyncio
import fcntl
import os
from collections.abc import Sequence
from pathlib import Path

from billfold.audit.seals import LINE_BEGINNING
from billfold.platform.errors import InvariantError


class FileArchive:
    """Append-only lines, stored where owners of database rows have no access; several processes may add to them."""

    def __init__(self, path: Path, *, beginning: str = LINE_BEGINNING) -> None:
        self._path = path
        self._beginning = beginning.encode()

    def is_own(self) -> bool:
        """Return whether the file is an archive or can become one: missing, empty, or it begins as a line does."""
        if not self._path.exists():
            return True
        with self._path.open("rb") as file:
            return self._beginning.startswith(file.read(len(self._beginning)))

    async def lines(self) -> list[str]:
        """Return every line, oldest first; none while there is no file."""
        return await asyncio.to_thread(self._read)

    async def add(self, lines: Sequence[str], *, after: int) -> int:
        """Add lines after the first `after`, unless they are there already; return how many lines there are now.

        Raises InvariantError when the file is something else: nothing of it is changed.
        """
        return await asyncio.to_thread(self._add, lines, after)

    def _read(self) -> list[str]:
        if not self._path.exists():
            return []
        return self._path.read_text(encoding="utf-8").splitlines()

    def _add(self, lines: Sequence[str], after: int) -> int:
        if not self.is_own():
            raise InvariantError(f"{self._path} is no file of seals.")
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with os.fdopen(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600), "r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            # A line without its end was being written when the machine stopped.
            whole = file.read().rpartition(b"\n")[0]
            there = whole.count(b"\n") + 1 if whole else 0
            missing = lines[max(0, there - after) :]
            file.seek(len(whole) + 1 if whole else 0)
            file.truncate()
            file.write("".join(f"{line}\n" for line in missing).encode())
            file.flush()
            os.fsync(file.fileno())
        return there + len(missing)
