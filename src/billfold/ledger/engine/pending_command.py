"""A command on its way through the engine, the objects it references, and its outcome."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime
from typing import Any, Protocol
from uuid import UUID

import asyncpg
import msgspec
from asyncpg import Record

from billfold.ledger.book.book import Book
from billfold.ledger.book.notes import note_reference
from billfold.ledger.commands import Command, Missing, Outcome, Reference, add_command_row
from billfold.ledger.context import Context
from billfold.platform.database.connection import Connection
from billfold.platform.database.pool import uuid_array
from billfold.platform.errors import BillfoldError, InvariantError, NotFound, Refused
from billfold.platform.telemetry.tracing import tracing

_KNOWN = """
SELECT c.customer_id, c.command_id, c.request_hash, c.accepted, c.outcome
  FROM unnest($1::text::uuid[], $2::text::uuid[]) AS k(customer_id, command_id)
  JOIN command c USING (customer_id, command_id)
"""

_DUPLICATE_ID = "directory_pkey"
"""Two concurrent commands used one id for their objects: the directory accepts the first."""


class Answer(msgspec.Struct, frozen=True):
    """The answer to a command. `replayed` if it is the answer of an earlier run of the key."""

    outcome: Outcome
    replayed: bool = False


class KeptResponse(Protocol):
    """The response to the request behind a command, which may be kept in the commit of the command."""

    is_kept: bool

    def row(self, outcome: Outcome) -> tuple[Any, ...]:
        """Return the arguments of `response_keep`."""


class PendingCommand:
    """One command waiting for its batch; `answer` is planned; its future is resolved after COMMIT."""

    __slots__ = (
        *("_waiting", "answer", "caller_span", "command", "command_id"),
        *("customers", "deadline", "in_doubt", "outcome", "response"),
    )

    def __init__(
        self, command: Command, command_id: UUID, deadline: float, response: KeptResponse | None = None
    ) -> None:
        self.command = command
        self.command_id = command_id
        self.customers = tuple(dict.fromkeys(command.customers))
        self._waiting: list[asyncio.Future[Answer]] = []
        self.deadline = deadline
        self.response = response
        self.caller_span = tracing.current()
        self.in_doubt = False
        """Return whether a batch with it has failed: then an earlier run of its key may have been committed."""
        self.answer: Answer | BillfoldError | None = None
        self.outcome: Outcome | None = None
        """The outcome of this run; None while it is undecided, and for a replay."""

    @property
    def result(self) -> str:
        """Return the result as it is counted: accepted, refused or replayed."""
        if isinstance(self.answer, Answer):
            return "replayed" if self.answer.replayed else "accepted"
        return "refused"

    def needs_lock(self) -> bool:
        """Tell whether its customers have to be locked before it is decided.

        Rows that it references may change without a new version of their customer's head: numbering of ACH entries
        locks the heads instead. Counterparties that were `seen` change only with it.
        """
        command = self.command
        return self.in_doubt or command.creates_customer or bool(command.references and command.seen is None)

    def wait(self) -> asyncio.Future[Answer]:
        """Return the future answer. A caller that stops waiting does not affect the others."""
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        return future

    def done(self) -> None:
        """Return the planned answer to the callers; called after COMMIT."""
        if isinstance(self.answer, BillfoldError):
            self.fail(self.answer)
        elif self.answer is not None:
            for future in self._waiting:
                if not future.done():
                    future.set_result(self.answer)

    def fail(self, error: BaseException) -> None:
        """Fail the callers: there will be no answer."""
        for future in self._waiting:
            if not future.done():
                future.set_exception(error)


def record_outcome(book: Book, job: PendingCommand, outcome: Outcome, now: datetime, *, accepted: bool) -> None:
    """Write the command's row: caller, key and outcome."""
    job.outcome = outcome
    add_command_row(book, job.command, outcome, now, accepted=accepted)


def answer_from_outcome(outcome: Outcome, *, accepted: bool, replayed: bool) -> Answer | BillfoldError:
    """Return the answer for an outcome, or raise its refusal."""
    if accepted:
        return Answer(outcome, replayed)
    if outcome["refused"] == "not-found":
        return NotFound(outcome["detail"], **outcome["facts"])
    refused = Refused(outcome["refused"], outcome["detail"], **outcome["facts"])
    refused.about = outcome.get("about")
    return refused


async def earlier_runs(conn: Connection, batch: Sequence[PendingCommand]) -> dict[UUID, Record]:
    """Return the rows that earlier runs of these commands left, by the command's id.

    Idempotency keys are assumed to be new; the primary key rejects duplicates, and only then are
    earlier rows read. A commit that was cut off while it waited for a synchronous replica has left its row only on the
    primary. An answer from that row waits for the replica, too: locks of heads are written, and this
    transaction's commit comes after them.
    """
    doubtful = [job for job in batch if job.in_doubt]
    if not doubtful:
        return {}
    rows = await conn.fetch(
        _KNOWN, uuid_array(job.customers[0] for job in doubtful), uuid_array(job.command_id for job in doubtful)
    )
    return {row["command_id"]: row for row in rows}


def replay_answer(job: PendingCommand, earlier: Record) -> Answer | BillfoldError:
    """Answer from the row that an earlier run of the same key left."""
    if earlier["request_hash"] != job.command.request_hash:
        return idempotency_key_reused()
    outcome = msgspec.json.decode(earlier["outcome"])
    return answer_from_outcome(outcome, accepted=earlier["accepted"], replayed=True)


def answer_undecided(job: PendingCommand, reason: Missing) -> bool:
    """Answer a command without a row, whose key is decided later; False to run it with more customers."""
    if reason.customer_id in job.customers:
        job.answer = NotFound()
    else:
        job.customers = (*job.customers, reason.customer_id)
        return False
    return True


def error_for_caller(error: Exception) -> BillfoldError:
    """Return the error for the caller of one command."""
    if isinstance(error, BillfoldError):
        return error
    if isinstance(error, asyncpg.PostgresError) and _is_duplicate_id(error):
        return Refused("duplicate-id", "Another object already has this id.")
    return InvariantError(f"{type(error).__name__}: {error}")


def _is_duplicate_id(error: asyncpg.PostgresError) -> bool:
    # A coordinator passes on a node's message about the key of a shard, but not the kind of error.
    return error.constraint_name == _DUPLICATE_ID or f'"{_DUPLICATE_ID}_' in str(error)


def idempotency_key_reused() -> Refused:
    """Return the error for a key that belongs to a request with another fingerprint."""
    return Refused("idempotency-key-reused", "This key already belongs to another request. Send a new one.")


ReferenceReader = Callable[["Connection", Sequence[UUID], Sequence[UUID]], Awaitable[list[tuple[UUID, UUID, Any]]]]
"""Reads the objects of one kind that some commands of some customers reference: (customer, id, object)."""
ReferenceReaders = Mapping[Reference, ReferenceReader]


async def load_references(
    conn: Connection, readers: ReferenceReaders, commands: Sequence[Command], books: Mapping[UUID, Book]
) -> None:
    """Load the objects that the commands reference into these books, and drop those of earlier ones."""
    noting = [part for each in commands for part in each.noting]
    if len(commands) == 1 and not noting and (seen := commands[0].seen) is not None:
        own = books.get(commands[0].customers[0])
        if own is not None and own.chain == seen.chains[own.customer_id]:
            own.referenced = dict(seen.objects)
            return
    ids = list({each for command in commands for each in command.references})
    if not ids and not noting:
        return
    for book in books.values():
        book.referenced.clear()
    kinds = {kind for command in commands for kind in command.reads}
    for kind in sorted(kinds) if ids else ():
        for customer_id, object_id, found in await readers[kind](conn, list(books), ids):
            books[customer_id].referenced[object_id] = found
    await _load_notes(conn, readers, noting, books=books)


async def _load_notes(
    conn: Connection, readers: ReferenceReaders, commands: Sequence[Command], books: Mapping[UUID, Book]
) -> None:
    """Load the notes of the objects that the commands change, and the holders of external ids that they give."""
    ids = [each for job in commands if job.attached for each in (job.noted, job.attached.key) if each is not None]
    for customer_id, _, row in await readers[Reference.NOTE](conn, list(books), ids) if ids else ():
        for place in filter(None, (note_reference(row.object_id), row.external_key)):
            books[customer_id].referenced[place] = row


def traced_command(command: Command) -> AbstractContextManager[Any]:
    """Record a command from its submission to its answer as a span, if spans are recorded."""
    return tracing.span(f"command {type(command).__name__}") if tracing.is_on else nullcontext()


def traced_batch(batch: Sequence[PendingCommand]) -> AbstractContextManager[Any]:
    """Record the transaction of a batch as a span that links to those of its commands, if spans are recorded."""
    if not tracing.is_on:
        return nullcontext()
    size: dict[str, int | str] = {"billfold.batch.commands": len(batch), "db.system.name": "postgresql"}
    return tracing.span("ledger batch", attributes=size, received={}, links=[job.caller_span for job in batch])


def mark_in_doubt(batch: Iterable[PendingCommand]) -> None:
    """Have earlier runs of these commands looked up: a batch with them has failed."""
    for job in batch:
        job.in_doubt = True


def decide(command: Command, own: dict[UUID, Book], ctx: Context) -> tuple[Outcome, bool]:
    """Return the outcome, and whether the command was accepted; a refusal leaves no trace."""
    try:
        return command.decide(own, ctx), True
    except (Refused, NotFound) as refusal:
        undo(own.values())
        outcome = {"refused": refusal.code, "detail": refusal.detail, "facts": refusal.facts}
        return outcome | ({"about": refusal.about} if refusal.about else {}), False


def undo(books: Iterable[Book]) -> None:
    """Roll books back to their savepoints."""
    for book in books:
        book.undo()


CatchUpRule = Callable[[Book, Context], int]
"""Does all work due in a book by the context's `now`; returns how much was done."""
IdentifierLoader = Callable[[Connection, Mapping[UUID, Book]], Awaitable[None]]
"""Loads into these books, by customer, data that only some commands use (`Command.needs_identifiers`)."""
BatchRecorder = Callable[[Connection, Sequence[PendingCommand]], Awaitable[None]]
"""Writes audit entries or notifications of decided commands, in the transaction of their batch."""
