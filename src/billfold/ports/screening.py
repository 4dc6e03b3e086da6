"""What screening and verification providers decide about money, names and files."""

from __future__ import annotations

from typing import Final, Protocol


class Screening(Protocol):
    """Decides without asking anybody: the same question has the same answer. None lets through."""

    def stopped_transfer(self, amount: int | None, /) -> str | None:
        """Return why an on-us transfer of so many cents (None: everything) is rejected."""

    def stopped_wire(self, amount: int | None, /) -> str | None:
        """Return why a wire of so many cents (None: everything) is rejected."""

    def unverifiable_name(self, name: str, /) -> str | None:
        """Return why nobody of this name can be verified as a counterparty."""

    def invalid_file(self, name: str | None, /) -> str | None:
        """Return why an uploaded file is not accepted as a document."""

    def deposit_amounts(self) -> tuple[int, int] | None:
        """Return the cents of the two deposits that verify an account; None has them drawn."""


class NoScreening:
    """Stops nothing."""

    def stopped_transfer(self, _amount: int | None) -> str | None:
        """Return None."""
        return None

    def stopped_wire(self, _amount: int | None) -> str | None:
        """Return None."""
        return None

    def unverifiable_name(self, _name: str) -> str | None:
        """Return None."""
        return None

    def invalid_file(self, _name: str | None) -> str | None:
        """Return None."""
        return None

    def deposit_amounts(self) -> tuple[int, int] | None:
        """Return None."""
        return None


NO_SCREENING: Final = NoScreening()
