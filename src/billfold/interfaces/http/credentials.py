"""What tokens stand for, kept in memory for a second: most requests need no look-up.

A token revoked, a secret changed or a limit moved is in force everywhere within that second.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from datetime import datetime
from typing import TYPE_CHECKING

from billfold.domain.identity import Credential, find_credential
from billfold.kit.clock import monotonic
from billfold.kit.crypto import Vault, hash_token

if TYPE_CHECKING:
    from billfold.kit.db import Pool

FRESH_SECONDS = 1.0
KEPT = 10_000


class Credentials:
    """The tokens one process has seen lately."""

    __slots__ = ("_asked", "_known", "_pool", "_vault")

    def __init__(self, pool: Pool, vault: Vault) -> None:
        self._pool = pool
        self._vault = vault
        self._known: OrderedDict[bytes, tuple[float, Credential]] = OrderedDict()
        self._asked: dict[bytes, asyncio.Task[Credential | None]] = {}

    async def find(self, token: str, now: datetime) -> Credential | None:
        """Return what a token stands for at wall time `now`, or None: unknown or expired."""
        token_hash = hash_token(token)
        known = self._known.get(token_hash)
        credential: Credential | None
        if known is not None and monotonic() - known[0] < FRESH_SECONDS:
            credential = known[1]
        else:
            credential = await self._look_up(token_hash, now)
        return credential if credential is not None and credential.expires_at > now else None

    async def _look_up(self, token_hash: bytes, now: datetime) -> Credential | None:
        """Ask the database, once for all who want to know at the same time."""
        task = self._asked.get(token_hash)
        if task is None:
            task = asyncio.create_task(self._fetch(token_hash, now))
            self._asked[token_hash] = task
            task.add_done_callback(lambda _: self._asked.pop(token_hash, None))
        return await asyncio.shield(task)

    async def _fetch(self, token_hash: bytes, now: datetime) -> Credential | None:
        credential = await find_credential(self._pool, self._vault, token_hash, now)
        if credential is None:
            self._known.pop(token_hash, None)
        else:
            self._known[token_hash] = (monotonic(), credential)
            self._known.move_to_end(token_hash)
            if len(self._known) > KEPT:
                self._known.popitem(last=False)
        return credential
