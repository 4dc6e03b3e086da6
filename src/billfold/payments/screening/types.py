"""What screening and verification providers decide about money, names and files."""

from __future__ import annotations

from typing import Protocol


class Screening(Protocol):
    """Decides without asking anybody: the same question has the same answer."""

    def stopped_transfer(self, _amount: int | None, /) -> str | None:
        """Return why an on-us transfer of so many cents (None: everything) is rejected."""
        return None

    def stopped_wire(self, _amount: int | None, /) -> str | None:
        """Return why a wire of so many cents (None: everything) is rejected."""
        return None

    def unverifiable_name(self, _name: str, /) -> str | None:
        """Return why nobody of this name can be verified as a counterparty."""
        return None

    def invalid_file(self, _name: str | None, /) -> str | None:
        """Return why an uploaded file is not accepted as a document."""
        return None

    def deposit_amounts(self) -> tuple[int, int] | None:
        """Return the cents of the two deposits that verify an account; None has them drawn."""
        return None


class NoScreening(Screening):
    """Stops nothing."""
