"""Runs a command on books that are not written: returns its outcome and the rows it would write."""

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from billfold.ledger.bank import Bank
from billfold.ledger.book.book import Book
from billfold.ledger.book.draft import Kind
from billfold.ledger.commands import Command, Outcome
from billfold.ledger.context import Context
from billfold.ledger.engine.load_books import READ_HEADS, load_books, load_identifiers
from billfold.ledger.engine.pending_command import Answer, load_references, undo
from billfold.platform.database.connection import Connection
from billfold.platform.database.pool import uuid_array
from billfold.platform.errors import BillfoldError, NotFound, Refused


class DryRun(NamedTuple):
    """The outcome of a command `now`, the book of its first customer as the last command would leave it, and all books.

    Work that fell due before, and would be written with it, is part of the book but not of its rows.
    """

    now: datetime
    outcome: Outcome
    book: Book
    lengths: tuple[dict[type[Any], int], dict[type[Any], int]]
    books: Mapping[UUID, Book]

    def rows_of(self, kind: type[Kind]) -> Sequence[Kind]:
        """Return the rows of a class that the command itself would write."""
        before, after = (each.get(kind, 0) for each in self.lengths)
        return self.book.draft.rows_of(kind)[before:after]


async def dry_run(conn: Connection, bank: Bank, command: Command) -> DryRun:
    """Return what the command would do now. Raises Refused and NotFound like its rule.

    The command must name every customer it touches. Its outcome may differ when it
    is submitted: other commands move money in the meantime.
    """
    (found,) = await dry_run_in_order(conn, bank, [command])
    if isinstance(found, BillfoldError):
        raise found
    return found


async def dry_run_in_order(conn: Connection, bank: Bank, commands: Sequence[Command]) -> list[DryRun | BillfoldError]:
    """Return what each command would do after those before it, which share its book; a refused one leaves no trace."""
    now = await bank.engine.now(conn)
    customers = {each for command in commands for each in command.customers}
    heads = await conn.fetch(READ_HEADS, uuid_array(sorted(customers)))
    books = await load_books(conn, heads, bank.market, calendars=bank.calendars)
    for head in heads:
        books[head["customer_id"]].due_at = head["due_at"]
    if any(each.needs_identifiers for each in commands):
        await load_identifiers(conn, bank.engine.identifiers, books.values())
    await load_references(conn, bank.engine.references, commands, books=books)
    ctx = bank.engine.context(now)
    for book in books.values():
        if book.due_at is not None and book.due_at <= now:
            bank.engine.catch_up(book, ctx)
    return [_run(command, books, ctx) for command in commands]


def _run(command: Command, books: Mapping[UUID, Book], ctx: Context) -> DryRun | BillfoldError:
    own = {each: books[each] for each in command.customers if each in books}
    if len(own) < len({*command.customers}):
        return NotFound()
    for book in own.values():
        book.savepoint()
    ctx.serve(command.command_id)
    first = own[command.customers[0]]
    before = first.draft.lengths()
    try:
        outcome = command.decide(own, ctx)
        return DryRun(ctx.now, outcome, first, (before, first.draft.lengths()), own)
    except (Refused, NotFound) as refusal:
        undo(own.values())
        return refusal


COMMANDS_PER_BATCH = 500


async def submit_in_lots(bank: Bank, commands: Iterable[Command]) -> AsyncIterator[tuple[Command, Answer]]:
    """Carry out commands and yield each with its answer, in order.

    Raises the first refusal or failure; commands carried out before it stay.
    """
    for batch in _batches(commands):
        answers = await bank.engine.submit_all(batch)
        for command, answer in zip(batch, answers, strict=True):
            if isinstance(answer, Exception):
                raise answer
            yield command, answer


def _batches(commands: Iterable[Command]) -> Iterator[list[Command]]:
    """Yield batches of so many commands, fewer of those with many references."""
    batch: list[Command] = []
    size = 0
    for command in commands:
        batch.append(command)
        size += max(1, len(command.references))
        if size >= COMMANDS_PER_BATCH:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
