"""A place outside the database that takes lines and never gives one back changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Archive(Protocol):
    """Append-only lines, stored where owners of database rows have no access."""

    async def lines(self) -> list[str]:
        """Return every line, oldest first."""

    async def add(self, lines: Sequence[str], *, after: int) -> int:
        """Add lines behind the first `after`; those that are there already are not added again.

        Returns how many lines there are now.
        """
