"""The books that a process decided by last, kept so that they are not loaded again while nobody else writes them."""

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from uuid import UUID

from asyncpg import Record

from billfold.bills.rules.market import Market
from billfold.ledger.book.book import Book
from billfold.ledger.engine.load_books import load_books
from billfold.platform.database.connection import Connection

BOOKS_KEPT = 1_000  # one that is not cached is read with its head, which is read anyway


class BookCache:
    """Books by customer, the last used ones last."""

    def __init__(self, market: Market) -> None:
        self._books: OrderedDict[UUID, Book] = OrderedDict()
        self._calendars = market.calendars

    def forget(self, customer_ids: Iterable[UUID]) -> None:
        """Drop books, as after a write by another process."""
        for customer_id in customer_ids:
            self._books.pop(customer_id, None)

    def clear(self) -> None:
        """Drop every book."""
        self._books.clear()

    def current(self, customers: Sequence[UUID], chains: Mapping[UUID, bytes], market: Market) -> dict[UUID, Book]:
        """Return the books of these customers if all are here, and their chains end like these; else nothing."""
        books = {c: book for c in customers if (book := self._books.get(c)) is not None}
        is_current = self._calendars is market.calendars and chains == {c: book.chain for c, book in books.items()}
        return books if is_current and len(books) == len(customers) else {}

    async def load(self, conn: Connection, heads: Iterable[Record], market: Market) -> dict[UUID, Book]:
        """Return the books of these heads; those that are not here, or older, are loaded."""
        if self._calendars is not market.calendars:
            self.clear()  # they contain due times by the former calendars
            self._calendars = market.calendars
        books: dict[UUID, Book] = {}
        not_cached = []
        for head in heads:
            cached = self._books.get(head["customer_id"])
            # The chain too: where a failover lost commits, numbers are reused.
            if cached is not None and cached.version == head["version"] and cached.chain == head["chain"]:
                books[cached.customer_id] = cached
                self._books.move_to_end(cached.customer_id)
            else:
                not_cached.append(head)
        if not_cached:
            loaded = await load_books(conn, not_cached, market, calendars=market.calendars)
            for head in not_cached:
                loaded[head["customer_id"]].due_at = head["due_at"]
            books |= loaded
            self._books |= loaded
            while len(self._books) > BOOKS_KEPT:
                self._books.popitem(last=False)
        return books
