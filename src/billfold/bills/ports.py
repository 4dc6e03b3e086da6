"""The port of a price source: a folder or an address of published files, or a session on which dealers quote."""

from collections.abc import Sequence
from typing import Protocol

from billfold.bills.types import PriceFile, TwoSidedQuote


class SourceUnavailable(Exception):
    """A source has nothing to read now. The text gives the reason."""


class PriceSource(Protocol):
    """A source of market data."""

    @property
    def name(self) -> str:
        """The name that operators see."""

    async def read(self) -> Sequence[PriceFile | TwoSidedQuote]:
        """Return all that the source has now; what was read before may be among it. Raises SourceUnavailable."""
