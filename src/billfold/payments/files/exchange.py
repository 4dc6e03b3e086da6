"""Exchanges of files with the rails: the port, and one in folders: `outbox`, `inbox`, `done` and `refused`.

Files appear atomically: each is written under a name with a leading dot and then renamed. Names with a
leading dot are ignored.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from threading import get_native_id
from typing import Protocol

import msgspec

from billfold.payments.files.types import OversizedFile
from billfold.platform.durable_files import make_durable


class FileExchange(Protocol):
    """The outbound and inbound files of one rail."""

    async def transmit(self, name: str, content: bytes) -> None:
        """Transmit a file atomically. Safe to repeat with the same name and content."""

    async def list_inbound(self) -> list[str]:
        """Return the names of the inbound files, in order."""

    async def read(self, name: str) -> bytes | None:
        """Return the content of an inbound file; None if it was archived in the meantime. Raises OversizedFile."""

    async def archive(self, name: str, *, report: bytes, refused: bool = False) -> None:
        """Archive an inbound file as processed or refused, together with its report."""


class RailExchanges(msgspec.Struct, frozen=True, kw_only=True):
    """The file exchanges of the bank, one per rail."""

    ach: FileExchange
    wire: FileExchange
    card: FileExchange
    custody: FileExchange
    statement: FileExchange

    def of(self, rail: str) -> FileExchange:
        """Return the exchange of ACH, WIRE, CARD, CUSTODY, or of statements."""
        exchange: FileExchange = getattr(self, rail.lower())
        return exchange


REPORT = ".report.json"
FILE_BYTES_MAX = 100 * 2**20
"""Maximum size of an inbound file, a hundred times a busy day of a bank. It is read into memory."""
_NAME_BYTES = 200
"""Maximum length of a file name: the report adds a suffix, and a name has at most 255 bytes."""


class ExchangeFolders:
    """The folders of one rail below a root."""

    def __init__(self, folder: Path, *, outbox: str = "outbox", inbox: str = "inbox") -> None:
        self._folder = folder
        self._outbox, self._inbox = folder / outbox, folder / inbox

    def network_side(self) -> ExchangeFolders:
        """Return the exchange from the network's point of view."""
        return ExchangeFolders(self._folder, outbox=self._inbox.name, inbox=self._outbox.name)

    async def transmit(self, name: str, content: bytes) -> None:
        """Transmit a file atomically. Safe to repeat with the same name and content."""
        await asyncio.to_thread(_write_atomically, self._outbox, name, content)

    async def list_inbound(self) -> list[str]:
        """Return the names of the inbound files, in order."""
        return await asyncio.to_thread(self._names)

    async def read(self, name: str) -> bytes | None:
        """Return the content of an inbound file; None if it was archived in the meantime."""
        return await asyncio.to_thread(_read_content, self._inbox / name)

    async def archive(self, name: str, *, report: bytes, refused: bool = False) -> None:
        """Archive an inbound file as processed or refused, together with its report."""
        await asyncio.to_thread(self._archive, name, report, refused)

    def _names(self) -> list[str]:
        if not self._inbox.is_dir():
            return []
        return sorted(_safe_name(path) for path in self._inbox.iterdir() if _is_file(path))

    def _archive(self, name: str, report: bytes, refused: bool) -> None:  # noqa: FBT001 - selects one of two folders
        is_bank_side = self._inbox.name == "inbox"
        target = self._folder / ("refused" if refused else "done" if is_bank_side else "sent")
        if is_bank_side:
            _write_atomically(target, name + REPORT, report)
        target.mkdir(parents=True, exist_ok=True)
        with suppress(FileNotFoundError):
            (self._inbox / name).replace(target / name)


def _read_content(path: Path) -> bytes | None:
    try:
        with path.open("rb") as file:
            content = file.read(FILE_BYTES_MAX + 1)
    except FileNotFoundError:
        return None
    if len(content) > FILE_BYTES_MAX:
        raise OversizedFile(FILE_BYTES_MAX)
    return content


def _is_file(path: Path) -> bool:
    """Return whether this is an inbound file. Symbolic links and unreadable files are ignored."""
    return path.is_file() and not path.is_symlink() and not path.name.startswith(".") and os.access(path, os.R_OK)


def _safe_name(path: Path) -> str:
    """Return the file's name. A name that is not printable or too long is replaced on disk."""
    name = path.name
    if name.isprintable() and len(name.encode()) <= _NAME_BYTES:
        return name
    digest = sha256(os.fsencode(name)).hexdigest()[:12]
    sanitized = "".join(char if char.isascii() and char.isalnum() else "_" for char in path.stem)
    safe_name = f"{sanitized[:60].lstrip('.')}-{digest}.renamed"
    with suppress(FileNotFoundError):
        path.rename(path.with_name(safe_name))
    return safe_name


def _write_atomically(folder: Path, name: str, content: bytes) -> None:
    if not name or Path(name).name != name or name.startswith("."):
        reason = f"{name!r} is not the name of a file"
        raise ValueError(reason)
    folder.mkdir(parents=True, exist_ok=True)
    temporary = folder / f".{name}.{get_native_id()}"  # of the thread: several may write the same file
    with temporary.open("wb") as out:
        out.write(content)
        out.flush()
        os.fsync(out.fileno())
    temporary.replace(folder / name)
    make_durable(folder)
