"""A folder of files with random names, outside everything that is served."""

import asyncio
import os
from datetime import datetime
from pathlib import Path

from billfold.documents.ports import StoredFile, check_key, check_unaltered, file_missing, new_file
from billfold.platform.durable_files import make_durable

_TEMPORARY_SUFFIX = ".part"


class LocalFileStore:
    """Keeps files in a folder that only the bank's operating system user may read."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def check(self) -> str:
        """Return where the files are kept. Write access is checked with the other folders."""
        return str(self._folder)

    async def keep(self, content: bytes) -> StoredFile:
        """Store a file durably; when this returns it survives a crash."""
        return await asyncio.to_thread(self._keep, content)

    async def fetch(self, file: StoredFile) -> bytes:
        """Return the file as stored. Raises StoredFileMissing."""
        return await asyncio.to_thread(self._fetch, file)

    async def list_stored(self, before: datetime) -> list[str]:
        """Return the names of files last written before this instant, including unfinished ones."""
        return await asyncio.to_thread(self._list, before.timestamp())

    async def discard(self, key: str) -> None:
        """Delete a file. A file that no longer exists is not an error."""
        path = self._path(key.removesuffix(_TEMPORARY_SUFFIX))
        await asyncio.to_thread((path.parent / key).unlink, missing_ok=True)

    def _path(self, key: str) -> Path:
        """Return the path of a file: in one of 256 folders. Raises StoredFileMissing for an invalid key."""
        check_key(key)
        return self._folder / key[:2] / key

    def _keep(self, content: bytes) -> StoredFile:
        file = new_file(content)
        self._write(self._path(file.key), content)
        return file

    def _fetch(self, file: StoredFile) -> bytes:
        try:
            content = self._path(file.key).read_bytes()
        except FileNotFoundError:
            raise file_missing(file) from None
        check_unaltered(file, content)
        return content

    def _list(self, before: float) -> list[str]:
        if not self._folder.is_dir():
            return []
        keys = []
        for subfolder in self._folder.iterdir():
            with os.scandir(subfolder) as files:
                keys += [each.name for each in files if each.stat().st_mtime < before]
        return sorted(keys)

    def _write(self, path: Path, content: bytes) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.parent.mkdir(mode=0o700, exist_ok=True)
        temporary = path.with_suffix(_TEMPORARY_SUFFIX)
        try:
            with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as out:
                out.write(content)
                out.flush()
                os.fsync(out.fileno())
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        for folder in (path.parent, self._folder):
            make_durable(folder)
