"""A command run on books that are not written: what its outcome would be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from billfold.ledger.commands import Command, Context, Outcome
from billfold.ledger.engine.load_books import LOCK_HEADS, load_books, load_identifiers
from billfold.ledger.engine.pending_command import load_references
from billfold.platform.database.pool import uuid_array
from billfold.platform.errors import NotFound

if TYPE_CHECKING:
    from billfold.ledger.bank import Bank
    from billfold.platform.database.pool import Connection

_HEADS = LOCK_HEADS.replace("FOR UPDATE", "")


async def dry_run(conn: Connection, bank: Bank, command: Command) -> Outcome:
    """Return the outcome the command would have now. Raises Refused and NotFound as its rule does.

    The command must name every customer it touches. Its outcome may differ when it
    is submitted: other commands move money meanwhile.
    """
    now = await bank.engine.now(conn)
    heads = await conn.fetch(_HEADS, uuid_array(sorted(command.customers)))
    books = await load_books(conn, heads, bank.market, calendars=bank.calendars)
    if not books.keys() >= set(command.customers):
        raise NotFound
    for head in heads:
        books[head["customer_id"]].due_at = head["due_at"]
    if command.needs_identifiers:
        await load_identifiers(conn, bank.engine.identifiers, books.values())
    await load_references(conn, bank.engine.references, [command], books=books)
    ctx = Context(now=now, market=bank.market, calendars=bank.calendars, terms=bank.terms, seed=bank.seed)
    for book in books.values():
        if book.due_at is not None and book.due_at <= now:
            bank.engine.catch_up(book, ctx)
        book.savepoint()
    ctx.serve(command.command_id)
    return command.decide(books, ctx)
