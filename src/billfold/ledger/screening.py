"""The port of a screening of payments, payees and documents."""

from typing import Protocol


class Screening(Protocol):
    """Screens payments, payees and documents. Pure: the same input has the same result."""

    def stopped_wire(self, _amount: int | None, /) -> str | None:
        """Return why a wire of so many cents (None: the whole balance) is rejected."""
        return None

    def stops_card(self, _amount: int, /) -> bool:
        """Tell whether a payment of so many cents by card is suspected of fraud."""
        return False

    def unverifiable_name(self, _name: str, /) -> str | None:
        """Return why a counterparty of this name cannot be verified."""
        return None

    def invalid_file(self, _name: str | None, /) -> str | None:
        """Return why an uploaded file is not accepted as a document."""
        return None

    def deposit_amounts(self) -> tuple[int, int] | None:
        """Return the two micro-deposit amounts in cents; None: they are drawn at random."""
        return None


class NoScreening(Screening):
    """Accepts everything."""
