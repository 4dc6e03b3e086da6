"""Messages on a TCP connection: each is preceded by its length in bytes."""

import asyncio
from enum import StrEnum
from typing import Final

LENGTH_MAX: Final = 4096
"""Bytes of a message; all elements of an authorisation together have less."""


class LengthPrefix(StrEnum):
    """How the length is written: in two or four bytes, the most significant first, or in four digits."""

    TWO_BYTES = "2-bytes"
    FOUR_BYTES = "4-bytes"
    FOUR_DIGITS = "4-digits"

    def write(self, raw: bytes) -> bytes:
        """Return a message with its length."""
        if self is LengthPrefix.FOUR_DIGITS:
            return b"%04d" % len(raw) + raw
        return len(raw).to_bytes(self._size) + raw

    @property
    def _size(self) -> int:
        return 2 if self is LengthPrefix.TWO_BYTES else 4

    async def read(self, stream: asyncio.StreamReader, *, idle_seconds: float, message_seconds: float) -> bytes:
        """Return the next message; one of length zero keeps a connection alive.

        Raises LengthError, TimeoutError when nothing comes or a message does not end, EOFError at the end.
        """
        async with asyncio.timeout(idle_seconds):
            first = await stream.readexactly(1)
        async with asyncio.timeout(message_seconds):
            prefix = first + await stream.readexactly(self._size - 1)
            length = self._length(prefix)
            if not 0 <= length <= LENGTH_MAX:
                raise LengthError
            return await stream.readexactly(length)

    def _length(self, prefix: bytes) -> int:
        if self is LengthPrefix.FOUR_DIGITS:
            return int(prefix) if prefix.isdigit() else -1
        return int.from_bytes(prefix)


class LengthError(Exception):
    """A length that no message has: where the next one begins is not known any more."""
