"""Files exchanged with a rail: outbound files are transmitted, inbound files are processed.

The transport (a connection to the Federal Reserve, a file transfer of a bank) is outside of the
bank. File names are single path components.
"""

from typing import Protocol

import msgspec


class FileExchange(Protocol):
    """The outbound and inbound files of one rail."""

    async def transmit(self, name: str, content: bytes) -> None:
        """Transmit a file atomically. Safe to repeat with the same name and content."""

    async def list_inbound(self) -> list[str]:
        """Return the names of the inbound files, in order."""

    async def read(self, name: str) -> bytes | None:
        """Return the content of an inbound file; None if it was archived in the meantime. Raises OversizedFile."""

    async def archive(self, name: str, *, report: bytes, refused: bool = False) -> None:
        """Archive an inbound file as processed or refused, with its report beside it."""


class RailExchanges(msgspec.Struct, frozen=True, kw_only=True):
    """The file exchanges of the bank, one per rail."""

    ach: FileExchange
    wire: FileExchange
    card: FileExchange

    def of(self, rail: str) -> FileExchange:
        """Return the exchange of ACH, WIRE or CARD."""
        exchange: FileExchange = getattr(self, rail.lower())
        return exchange
