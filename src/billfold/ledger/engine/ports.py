"""Functions that the engine calls, passed to it by the wiring."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from uuid import UUID

from billfold.ledger.book.book import Book
from billfold.ledger.context import Context
from billfold.ledger.engine.pending_command import PendingCommand
from billfold.platform.database.connection import Connection

CatchUpRule = Callable[[Book, Context], int]
"""Does everything that was due in a book by the context's `now`; returns how many things were done."""
IdentifierLoader = Callable[[Connection, Mapping[UUID, Book]], Awaitable[None]]
"""Loads into these books, by customer, what only some commands use (`Command.needs_identifiers`)."""
BatchRecorder = Callable[[Connection, Sequence[PendingCommand]], Awaitable[None]]
"""Writes audit entries or notifications of decided commands, in the transaction of their batch."""
