"""Where addresses on chains come from."""

from typing import Protocol

from billfold.accounts.portals.types import Wallet


class WalletSource(Protocol):
    """Gives out addresses, none twice."""

    @property
    def chains(self) -> tuple[str, ...]:
        """The chains on which there are addresses."""

    async def allot(self, chain: str) -> Wallet:
        """Return a new address on one of the chains."""

    def minimum_cents(self, chain: str) -> int | None:
        """Return the smallest deposit that is credited at once, None where the chain is not read any more."""
