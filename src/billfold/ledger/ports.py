"""What the ledger needs of parts above it, and of providers outside."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Protocol
from uuid import UUID

if TYPE_CHECKING:
    from billfold.ledger.book.book import Book
    from billfold.ledger.context import (Context)
    from billfold.platform.database.connection import (Connection)

CatchUpRule = Callable[["Book", "Context"], int]
"""Does everything that was due in a book by the context's `now`; returns how many things were done."""
IdentifierLoader = Callable[["Connection", Mapping[UUID, "Book"]], Awaitable[None]]
"""Loads into these books, by customer, what only some commands use (`Command.needs_identifiers`)."""


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
