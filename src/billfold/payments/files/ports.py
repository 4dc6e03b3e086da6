"""Files exchanged with a rail: we hand over ours and take what has arrived.

Whoever carries them on (a connection to the Federal Reserve, a bank's file transfer) is outside.
Names are single components of a path.
"""

from typing import Protocol

import msgspec


class InboundFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file that waits to be taken."""

    name: str
    content: bytes


class FileExchange(Protocol):
    """One rail's way out and in."""

    async def transmit(self, name: str, content: bytes) -> None:
        """Hand a file over, whole or not at all. The same name and content may come again."""

    async def arrived(self) -> list[InboundFile]:
        """Return the files that have arrived, by name."""

    async def waiting(self) -> list[str]:
        """Return the names of the files that have arrived, in order."""

    async def read(self, name: str) -> bytes | None:
        """Return what an arrived file says, None when it has been put away meanwhile."""

    async def put_away(self, name: str, *, report: bytes, refused: bool = False) -> None:
        """Move an arrived file to the taken or the refused ones, its report beside it."""


class RailExchanges(msgspec.Struct, frozen=True, kw_only=True):
    """The exchanges of the bank."""

    ach: FileExchange
    wire: FileExchange

    def of(self, rail: str) -> FileExchange:
        """Return the exchange of ACH or WIRE."""
        return self.ach if rail == "ACH" else self.wire
