"""The file store, which is full or breaks off inside a file, and the master key service, which fails for a while."""

from __future__ import annotations

import errno
from pathlib import Path
from random import Random
from typing import Any

from billfold.data_keys.kms import FileMasterKey
from billfold.documents.local_store import LocalFileStore
from billfold.platform.errors import Unavailable
from simulation.faults import Faults
from simulation.loop import SimulationLoop
from simulation.oracles import require

AWAY_SECONDS = 15.0
"""A spell's longest: no process starts without the master key."""


class Stores:
    """Both, for every process: a spell begins by chance at a call, ten times as often as a fault of a statement."""

    def __init__(self, loop: SimulationLoop, random: Random, faults: Faults, files: Path) -> None:
        self._loop, self._random, self._faults, self._files = loop, random, faults, files
        self._until: dict[str, float] = {}
        store, key = LocalFileStore, FileMasterKey
        patched: Any = store
        write, wrap, unwrap = patched._write, key.wrap, key.unwrap

        def write_or_fail(kept: LocalFileStore, path: Path, content: bytes) -> None:
            if self._is_away("file store full"):
                raise OSError(errno.ENOSPC, "No space left on device")
            if self._is_away("file half written"):
                path.parent.mkdir(parents=True, exist_ok=True)
                path.with_suffix(".part").write_bytes(content[: len(content) // 2])
                raise OSError(errno.ENOSPC, "No space left on device")
            write(kept, path, content)

        async def wrap_or_fail(*told: Any) -> Any:
            self._require_key()
            return await wrap(*told)

        async def unwrap_or_fail(*told: Any) -> Any:
            self._require_key()
            return await unwrap(*told)

        patched._write = write_or_fail
        patched = key
        patched.wrap, patched.unwrap = wrap_or_fail, unwrap_or_fail

    def _require_key(self) -> None:
        if self._is_away("master key away"):
            raise Unavailable("The master key does not answer.")

    def _is_away(self, what: str) -> bool:
        begins = self._random.random() < 10 * self._faults.rate
        if begins and self._loop.now >= self._until.get(what, 0.0):  # repeated calls do not prolong it
            self._until[what] = self._loop.now + self._random.random() * AWAY_SECONDS
        is_away = self._faults.rate > 0 and self._loop.now < self._until.get(what, 0.0)
        self._faults.happened[what] += is_away
        return is_away

    async def check(self, conn: Any) -> None:
        """Check that every part of a report is whole."""
        for row in await conn.fetch("SELECT key, size_bytes FROM report_file_part"):
            path = self._files / row["key"][:2] / row["key"]
            require(path.is_file() and path.stat().st_size == row["size_bytes"], f"the file {path.name} is not whole")
