"""Where passwords are verified and hashed: slow on purpose, so only two at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from billfold.platform.crypto import hash_password, verify_password
from billfold.platform.errors import Unavailable

AT_ONCE = 2
"""How many are worked on side by side; each takes 19 MiB and a core."""
WAITING_MAX = 100

Result = TypeVar("Result")


class PasswordGate:
    """Verifies at most two passwords at a time; up to a hundred wait."""

    __slots__ = ("_gate", "_waiting")

    def __init__(self) -> None:
        self._gate = asyncio.Semaphore(AT_ONCE)
        self._waiting = 0

    async def verify(self, password_hash: str | None, password: str) -> bool:
        """Return whether a password is right; None takes as long. Raises Unavailable."""
        return await self._let_in(lambda: verify_password(password_hash, password))

    async def hash(self, password: str) -> str:
        """Return the hash of a new password. Raises Unavailable."""
        return await self._let_in(lambda: hash_password(password))

    async def _let_in(self, work: Callable[[], Result]) -> Result:
        if self._waiting >= WAITING_MAX:
            raise Unavailable("Too many logins are waiting.", retry_after_seconds=2)
        self._waiting += 1
        try:
            async with self._gate:
                return await asyncio.to_thread(work)
        finally:
            self._waiting -= 1
