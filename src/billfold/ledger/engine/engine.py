"""The engine: takes the commands that arrived while the last batch was committing and makes them durable.

Lanes run concurrently; each takes a batch of commands whose customers no other lane holds,
locks the heads in key order, loads only books not cached at that version, plans, writes
everything at once and commits. Every command, accepted or refused, leaves one row; the answer
is a function of that row, so a repeated key gets the same answer again.
"""

import asyncio
from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from datetime import datetime
from itertools import islice
from uuid import UUID

import asyncpg
import structlog

from billfold.bills.rules.market import Market
from billfold.ledger.book.book import Book
from billfold.ledger.commands import Command, Missing
from billfold.ledger.context import BankPolicy, Context
from billfold.ledger.engine import pending_command
from billfold.ledger.engine.book_cache import BookCache
from billfold.ledger.engine.load_books import insert_heads, load_identifiers, lock_heads, read_heads
from billfold.ledger.engine.pending_command import Answer, PendingCommand, decide
from billfold.ledger.engine.write_batch import SINGLE_CALL_MAX_BOOKS, fits_one_call, reset_drafts, write_books
from billfold.platform import errors
from billfold.platform.calendars import Calendars
from billfold.platform.clock import ClockState, business_now, monotonic, wall_now
from billfold.platform.database import shortage
from billfold.platform.database.business_clock import read_clock
from billfold.platform.database.connection import Connection, Db, Pool
from billfold.platform.database.distribution import is_distributed
from billfold.platform.database.shortage import PATIENCE_SECONDS
from billfold.platform.telemetry.metrics import BATCH_COMMANDS, BATCH_SECONDS, COMMANDS

log = structlog.get_logger(__name__)


class Engine:
    """The single writer of money. `submit` returns when the command is durable."""

    def __init__(
        self,
        pool: Pool,
        *,
        market: Market,
        terms: BankPolicy,
        seed: bytes,
        test_clock: bool,
        references: pending_command.ReferenceReaders,
        identifiers: Sequence[pending_command.IdentifierLoader],
        catch_up: pending_command.CatchUpRule,
        recorders: Sequence[pending_command.BatchRecorder] = (),
        lanes: int = 2,
        min_batch: int = 1,
        batch_limit: int = 300,
    ) -> None:
        self.pool = pool
        self.market = market
        self.terms = terms
        self.seed = seed
        self.test_clock = test_clock
        self.references = references
        self.identifiers = identifiers
        self.catch_up = catch_up
        self.recorders = recorders
        self.batch_limit = batch_limit
        self._lanes = lanes
        # A lane other than the first takes at least this many commands.
        self._min_batch_for_extra_lane = min_batch
        self._queue: deque[PendingCommand] = deque()
        self._wake = asyncio.Event()
        self._locked_customers: set[UUID] = set()
        self._in_flight: dict[UUID, PendingCommand] = {}
        self.books = BookCache(market)
        self._tasks: list[asyncio.Task[None]] = []
        self._by_shard = False
        self._running = 0
        self._turns = 0

    @property
    def calendars(self) -> Calendars:
        """The calendars with the overrides that this process has loaded."""
        return self.market.calendars

    @property
    def is_distributed(self) -> bool:
        """Tell whether the customers lie on the nodes of a cluster; known once it has started."""
        return self._by_shard

    @property
    def waiting(self) -> int:
        """Return the number of commands that wait for a batch."""
        return len(self._queue)

    # -- outside --------------------------------------------------------------------

    async def start(self) -> None:
        """Start the lanes."""
        self.context(wall_now())  # loads the holidays of the year now, not in the first command
        self._by_shard = await is_distributed(self.pool)
        self._tasks = [
            asyncio.create_task(self._lane(self._min_batch_for_extra_lane if nth else 1)) for nth in range(self._lanes)
        ]

    async def stop(self) -> None:
        """Stop the lanes; commands still queued fail as unavailable."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        while self._queue:
            self._give_up([self._queue.popleft()], errors.Unavailable("The bank is shutting down."))

    async def submit(self, command: Command, response: pending_command.KeptResponse | None = None) -> Answer:
        """Carry the command out exactly once and answer when it is committed.

        The `response` is kept in the same commit if the command is alone in it; its `is_kept` tells.

        Raises Refused or NotFound like the rule (also for a replay), Refused
        `idempotency-key-reused` if the key belongs to another request, Unavailable if the
        database stays unavailable.
        """
        with pending_command.traced_command(command):
            return await self._enqueue(command, response)

    def is_running(self, command: Command) -> bool:
        """Tell whether this process is carrying out a command under the same key, which `submit` would join."""
        return command.command_id in self._in_flight

    async def submit_all(self, commands: Sequence[Command]) -> list[Answer | errors.BillfoldError]:
        """Carry out many commands, as from a file; answers and refusals in their order.

        They share batches with other commands, so that these do not wait behind them.
        """
        futures = [self._enqueue(command) for command in commands]
        answers = await asyncio.gather(*futures, return_exceptions=True)
        for answer in answers:
            if isinstance(answer, BaseException) and not isinstance(answer, errors.BillfoldError):
                raise answer
        return answers  # type: ignore[return-value]

    def _enqueue(
        self, command: Command, response: pending_command.KeptResponse | None = None
    ) -> asyncio.Future[Answer]:
        """Queue the command, or join the one that is already running under its key."""
        command_id = command.command_id
        running = self._in_flight.get(command_id)
        if running is not None:
            if running.command.request_hash == command.request_hash:
                return running.wait()
            refused: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
            refused.set_exception(pending_command.idempotency_key_reused())
            return refused
        job = PendingCommand(command, command_id, monotonic() + PATIENCE_SECONDS, response)
        self._in_flight[command_id] = job
        self._queue.append(job)
        self._wake.set()
        return job.wait()

    async def now(self, conn: Db | None = None, *, hold: bool = False) -> datetime:
        """Return the business time; `hold` keeps the clock from being set until the transaction ends."""
        if not self.test_clock:
            return wall_now()
        if conn is None:
            async with self.pool.acquire() as own:
                return await self.now(own)
        state = await read_clock(conn, hold=hold)
        wall = wall_now()
        return wall if state is None else state.at(wall)

    # -- a lane ---------------------------------------------------------------------

    async def _lane(self, min_batch: int) -> None:
        tried = (-1, 0)
        while True:
            # On a cluster a batch pays for each shard, however little it writes: one next to larger ones is too dear.
            at_least = max(min_batch, self._running // 2) if self._by_shard else min_batch
            # Too few are looked at again when a batch has begun or ended, or when as many wait in addition.
            turn = (self._turns, len(self._queue) // at_least)
            batch = self._take(at_least) if turn[1] and turn != tried else []
            tried = turn
            if not batch:
                self._wake.clear()
                await self._wake.wait()
                continue
            self._turns, self._running = self._turns + 1, self._running + len(batch)
            customers = {c for job in batch for c in job.customers}
            try:
                await self._run(batch)
            except asyncio.CancelledError:
                self._give_up(batch, errors.Unavailable("The bank is shutting down."))
                raise
            finally:
                self._locked_customers -= customers
                self._turns, self._running = self._turns + 1, self._running - len(batch)
                self._wake.set()

    def _take(self, at_least: int) -> list[PendingCommand]:
        """Return the next jobs, in order, except those whose customers another lane holds; none if they are fewer."""
        limit = self.batch_limit * (1 + self._by_shard)
        batch: list[PendingCommand] = []
        skipped: list[PendingCommand] = []
        blocked = set(self._locked_customers)
        for job in self._queue:
            if len(batch) == limit:
                break
            if blocked.isdisjoint(job.customers):
                batch.append(job)
            else:
                skipped.append(job)
                blocked.update(job.customers)
        if len(batch) < at_least:
            return []
        self._queue = deque([*skipped, *islice(self._queue, len(batch) + len(skipped), None)])
        self._locked_customers.update(c for job in batch for c in job.customers)
        return batch

    async def _run(self, batch: Sequence[PendingCommand]) -> None:
        """Commit a batch, or find out which of its commands cannot be committed."""
        began = monotonic()
        try:
            with pending_command.traced_batch(batch):
                again = await self._commit(batch)
        except Exception as error:  # noqa: BLE001 - a bug in one command must not take others along
            if shortage.is_shortage(error):
                await self._retry(batch, error)
                return
            self.books.forget(c for job in batch for c in job.customers)
            if all(job.in_doubt for job in batch):
                await self._bisect(batch, error)
            else:
                log.info("batch_in_doubt", size=len(batch), error=repr(error))
                pending_command.mark_in_doubt(batch)
                await self._run(batch)
        else:
            BATCH_SECONDS.observe(monotonic() - began)
            BATCH_COMMANDS.observe(len(batch))
            self._finish(batch, again)

    def _finish(self, batch: Sequence[PendingCommand], again: list[PendingCommand]) -> None:
        """Answer the commands of a durable batch, and requeue those that need more customers."""
        for job in batch:
            if job not in again:
                self._in_flight.pop(job.command_id, None)
                COMMANDS.add(type(job.command).__name__, job.result)
                job.done()
        self._queue.extendleft(again)

    def _give_up(self, jobs: Iterable[PendingCommand], error: BaseException) -> None:
        for job in jobs:
            self._in_flight.pop(job.command_id, None)
            COMMANDS.add(type(job.command).__name__, "refused" if isinstance(error, errors.Refused) else "failed")
            job.fail(error)

    async def _bisect(self, batch: Sequence[PendingCommand], error: Exception) -> None:
        if len(batch) == 1:
            answer = pending_command.error_for_caller(error)
            if not isinstance(answer, errors.Refused):
                log.error("command_failed", kind=type(batch[0].command).__name__, error=repr(error))
            self._give_up(batch, answer)
            return
        log.warning("batch_bisected", size=len(batch), error=repr(error))
        half = len(batch) // 2
        await self._run(batch[:half])
        await self._run(batch[half:])

    async def _retry(self, batch: Sequence[PendingCommand], error: Exception) -> None:
        """Retry after the database was unavailable, maybe since COMMIT, or full: the commands' rows show results."""
        self.books.forget(c for job in batch for c in job.customers)
        if not all(job.in_doubt for job in batch):
            log.warning("database_unavailable", waiting=len(batch), error=shortage.error_summary(error))
        pending_command.mark_in_doubt(batch)
        now = monotonic()
        late = [job for job in batch if job.deadline <= now]
        self._give_up(late, shortage.database_unavailable())
        rest = [job for job in batch if job.deadline > now]
        self._queue.extendleft(reversed(rest))
        await asyncio.sleep(shortage.PAUSE_SECONDS)

    # -- a batch ----------------------------------------------------------------------

    async def _commit(self, batch: Sequence[PendingCommand]) -> list[PendingCommand]:
        """Plan and write in one transaction. Return jobs that need more customers."""
        customers = sorted({c for job in batch for c in job.customers})
        fits = len(batch) == 1 and len(customers) <= SINGLE_CALL_MAX_BOOKS and not self._by_shard
        async with self.pool.acquire() as conn:
            if fits and not batch[0].needs_lock():
                return await self._commit_alone(conn, batch[0], customers)
            async with conn.transaction():
                enrolled = [j.customers[0] for j in batch if j.command.creates_customer]
                if now := await self.now(conn, hold=True) if enrolled else None:  # the one instant of this batch
                    await insert_heads(conn, enrolled, now, business_date=self.context(now).business_date)
                heads, clock = await lock_heads(conn, customers, by_shard=self._by_shard)
                books = await self.books.load(conn, heads, self.market)
                now = now or self._at(clock)
                again, changed = await self._decide(conn, batch, books, now=now)
                if changed:
                    shards = {head["customer_id"]: head["shard"] for head in heads} if self._by_shard else None
                    await write_books(conn, changed, self.calendars, shards, now=now)
                    for record in self.recorders:
                        await record(conn, batch)
            reset_drafts(changed)
        return again

    async def _commit_alone(self, conn: Connection, job: PendingCommand, customers: list[UUID]) -> list[PendingCommand]:
        """Plan a single command on heads that are not locked: what it writes is refused if they have moved.

        Then it is planned again like any batch that fails, on locked heads. One statement is a transaction by itself.
        """
        seen = job.command.seen
        books = {} if seen is None else self.books.current(customers, seen.chains, self.market)
        if seen is not None and books:
            clock = seen.clock
        else:
            heads, clock = await read_heads(conn, customers)
            books = await self.books.load(conn, heads, self.market)
        now = self._at(clock)
        again, changed = await self._decide(conn, [job], books, now=now)
        if changed:
            # Notices are of rows that do not fit; audit entries may be of a refusal, which does.
            is_one_call = job.command.audit is None and fits_one_call(changed)
            kept = job.response if isinstance(job.answer, Answer) else None
            response = None if kept is None or job.outcome is None else kept.row(job.outcome)
            async with nullcontext() if is_one_call else conn.transaction():
                at = clock if self.test_clock else None
                await write_books(conn, changed, self.calendars, clock=at, response=response, now=now)
                for record in () if is_one_call else self.recorders:
                    await record(conn, [job])
            reset_drafts(changed)
            if kept is not None:
                kept.is_kept = response is not None
        return again

    def _at(self, clock: ClockState | None) -> datetime:
        return business_now(clock if self.test_clock else None, wall_now())

    async def _decide(
        self, conn: Connection, batch: Sequence[PendingCommand], books: dict[UUID, Book], *, now: datetime
    ) -> tuple[list[PendingCommand], list[Book]]:
        """Plan every command. Return jobs that need more customers, and the books that have changed."""
        needed = {c for job in batch if job.command.needs_identifiers for c in job.customers}
        if missing := [books[c] for c in needed if c in books and not books[c].references_loaded]:
            await load_identifiers(conn, self.identifiers, missing)
        asking = [job for job in batch if job.command.references or job.command.noting]
        theirs = {c: books[c] for job in asking for c in job.customers if c in books}
        await pending_command.load_references(conn, self.references, [job.command for job in asking], books=theirs)
        known = await pending_command.earlier_runs(conn, batch)
        ctx = self.context(now)  # after the reads, which may have loaded a newer market
        again = [job for job in batch if not self._plan(job, books, known, ctx=ctx)]
        return again, [book for book in books.values() if book.is_changed()]

    def context(self, now: datetime) -> Context:
        """Return the context of commands at an instant."""
        return Context(now=now, market=self.market, calendars=self.calendars, terms=self.terms, seed=self.seed)

    def _plan(
        self, job: PendingCommand, books: dict[UUID, Book], known: dict[UUID, asyncpg.Record], ctx: Context
    ) -> bool:
        """Decide one command. False when it must run again with more customers."""
        earlier, job.outcome = known.get(job.command_id), None
        if earlier is not None:
            job.answer = pending_command.replay_answer(job, earlier)
            return True
        own = {c: books[c] for c in job.customers if c in books}
        if job.customers[0] not in own:
            job.answer = errors.NotFound()
            return True
        for book in own.values():
            if book.due_at is not None and book.due_at <= ctx.now:
                self.catch_up(book, ctx)
            book.savepoint()
        ctx.serve(job.command_id)
        try:
            outcome, accepted = decide(job.command, own, ctx)
        except Missing as reason:
            pending_command.undo(own.values())
            return pending_command.answer_undecided(job, reason)
        job.answer = pending_command.answer_from_outcome(outcome, accepted=accepted, replayed=False)
        if job.command.is_recorded:
            pending_command.record_outcome(own[job.customers[0]], job, outcome, now=ctx.now, accepted=accepted)
        return True
