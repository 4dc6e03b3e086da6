"""Objects that commands reference besides holdings: rows read under the locks of their heads."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from uuid import UUID

from billfold.ledger.commands import Command, Reference

if TYPE_CHECKING:
    from billfold.ledger.book.book import Book
    from billfold.platform.database.pool import Connection

ReferenceReader = Callable[["Connection", Sequence[UUID], Sequence[UUID]], Awaitable[list[tuple[UUID, UUID, Any]]]]
"""Reads those of some objects of some customers that are of one kind: (customer, id, object)."""
ReferenceReaders = Mapping[Reference, ReferenceReader]


async def load_references(
    conn: Connection, readers: ReferenceReaders, commands: Sequence[Command], books: Mapping[UUID, Book]
) -> None:
    """Load into these books what the commands reference, and drop what earlier ones did."""
    ids = list({each for command in commands for each in command.references})
    if not ids:
        return
    for book in books.values():
        book.referenced.clear()
    for kind in sorted({kind for command in commands for kind in command.reference_kinds}):
        for customer_id, object_id, found in await readers[kind](conn, list(books), ids):
            books[customer_id].referenced[object_id] = found
