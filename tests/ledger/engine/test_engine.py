"""The engine: each command exactly once, refusals without a trace, failures of one command isolated."""

import asyncio
from datetime import date
from random import Random
from uuid import UUID

import msgspec
import pytest
from tests.support.rights_of_code import is_stored
from tests.support.whole_bank import PARTNER, Holder, engine_beside, expect_clean

from billfold.accounts.pockets.commands import SetPocketState
from billfold.ledger.commands import Command, book_of
from billfold.ledger.engine.pending_command import Answer
from billfold.ledger.types import AccountKind, JournalKind, PocketStatus
from billfold.payments.on_us.commands import TransferOnUs
from billfold.platform import ids
from billfold.platform.clock import ClockState, wall_now
from billfold.platform.database.business_clock import write_clock
from billfold.platform.database.rows import Row
from billfold.platform.dates import et_instant
from billfold.platform.errors import InvariantError, NotFound, Refused

Pair = tuple[Holder, Holder]


def payment(payer, payee, cents, **fields):
    return TransferOnUs(
        **{
            "caller": "test",
            "key": ids.new(),
            "customers": (payer.customer_id, payee.customer_id),
            "request_hash": b"payment",
            "transfer_id": None,
            "type": "PEER_TO_PEER",
            "from_pocket_id": payer.pocket_id,
            "to_pocket_id": payee.pocket_id,
            "amount": cents,
            "partner_id": PARTNER,
        }
        | fields
    )


async def counts(bank):
    """Count the rows of every table with customer rows, except heads."""
    tables = {row.table for row in Row.__subclasses__() if "customer_id" in row.__struct_fields__ and is_stored(row)}
    return {table: await bank.pool.fetchval(f"SELECT count(*) FROM {table}") for table in tables}


@pytest.fixture
async def two_holders(new_holder):
    """Two customers with money."""
    payer, payee = await new_holder(), await new_holder(weeks=26)
    await payer.deposit(50_000_00)
    await payee.deposit(10_000_00)
    return payer, payee


# -- once -----------------------------------------------------------------------------


async def test_a_repeated_command_returns_the_same_outcome(bank, two_holders: Pair):
    command = payment(*two_holders, 1_000_00)
    first = await bank.engine.submit(command)
    before = await counts(bank)
    again = await bank.engine.submit(command)
    assert (again.outcome, again.replayed, first.replayed) == (first.outcome, True, False)
    assert await counts(bank) == before


async def test_concurrent_submissions_of_one_command_return_one_outcome(bank, two_holders: Pair):
    command = payment(*two_holders, 1_000_00)
    answers = await asyncio.gather(*(bank.engine.submit(command) for _ in range(5)))
    assert len({msgspec.json.encode(answer.outcome) for answer in answers}) == 1
    assert await bank.pool.fetchval("SELECT count(*) FROM transfer") == 1


async def test_a_batch_with_a_repeated_key_executes_only_its_new_commands(bank, two_holders: Pair):
    old, new = payment(*two_holders, 1_000_00), [payment(*two_holders, cents) for cents in (2_000_00, 3_000_00)]
    first = await bank.engine.submit(old)
    before = await counts(bank)
    answers = await bank.engine.submit_all([new[0], old, new[1]])
    assert [answer.replayed for answer in answers] == [False, True, False]
    assert answers[1].outcome == first.outcome
    after = await counts(bank)
    assert {table: after[table] - before[table] for table in ("command", "transfer")} == {"command": 2, "transfer": 2}
    await expect_clean(bank)


async def test_a_command_key_reused_for_a_different_request_is_refused(bank, two_holders: Pair):
    command = payment(*two_holders, 1_000_00)
    other = msgspec.structs.replace(command, amount=2_000_00, request_hash=b"another")
    together = await bank.engine.submit_all([command, other])
    assert together[0].outcome["status"] == "COMPLETED"
    assert isinstance(together[1], Refused)
    with pytest.raises(Refused) as refused:
        await bank.engine.submit(other)
    assert refused.value.code == "idempotency-key-reused"
    await expect_clean(bank)


async def test_a_refused_command_stores_only_its_command_row(bank, two_holders):
    payer, payee = two_holders
    await bank.engine.submit(
        SetPocketState(
            caller="test",
            key=ids.new(),
            customers=(payer.customer_id,),
            pocket_id=payer.pocket_id,
            status=PocketStatus.FROZEN,
        )
    )
    before = await counts(bank)
    command = payment(payer, payee, 1_000_00)
    for _ in range(2):
        with pytest.raises(Refused) as refused:
            await bank.engine.submit(command)
        assert refused.value.code == "pocket-frozen"
    before |= {"command": before["command"] + 1, "chain_entry": before["chain_entry"] + 1}
    assert await counts(bank) == before
    await expect_clean(bank)


async def test_a_command_for_an_unknown_customer_raises_not_found(bank, two_holders):
    payer, payee = two_holders
    stranger = msgspec.structs.replace(payment(payer, payee, 100), customers=(ids.new(),))
    before = await counts(bank)
    with pytest.raises(NotFound):
        await bank.engine.submit(stranger)
    assert await counts(bank) == before


@pytest.mark.parametrize("refused", [True, False])
async def test_due_maturities_are_committed_when_the_next_command_loads_cold_books(bank, two_holders, refused):
    payer, payee = two_holders
    async with bank.pool.acquire() as conn:
        await write_clock(conn, ClockState(et_instant(date(2025, 7, 8), 10), wall_now(), frozen=True))
    bank.engine.books.clear()
    destination = {"to_pocket_id": payer.pocket_id} if refused else {}
    command = payment(payer, payee, 1_000_00, **destination)
    if refused:
        with pytest.raises(Refused):
            await bank.engine.submit(command)
    else:
        await bank.engine.submit(command)
    matured = await bank.pool.fetchval("SELECT count(*) FROM trade WHERE activity = 'MATURITY'")
    assert matured == 1
    # The payee's day and bills wait no longer than the payer's.
    await expect_clean(bank)


async def test_two_payments_of_one_batch_cannot_overdraw_a_pocket(bank, two_holders: Pair):
    commands = [payment(*two_holders, 30_000_00) for _ in range(2)]
    answers = await bank.engine.submit_all(commands)
    assert sorted(answer.outcome["status"] for answer in answers) == ["COMPLETED", "REJECTED"]
    await expect_clean(bank)


# -- broken commands --------------------------------------------------------------------


def explode(books, cmd, ctx):
    book = book_of(books, cmd.customers[0])
    if cmd.how == "raise":
        raise ZeroDivisionError("a bug")
    pocket = book.pockets[cmd.pocket_id]
    book.touch(pocket)
    book.begin(JournalKind.ADJUSTMENT, ctx, settles_on=ctx.business_date)
    amount = 10**12
    book.post(pocket.cash, book.internal_account(AccountKind.ON_US), amount)
    book.close()
    return {}


class Explode(Command, frozen=True, kw_only=True):
    """A command with a bug: it raises an error, or it plans rows that the database must refuse."""

    rule = explode

    pocket_id: UUID
    how: str


@pytest.mark.parametrize("how", ["raise", "overdraw"])
async def test_a_failing_command_does_not_fail_the_rest_of_its_batch(bank, two_holders, monkeypatch, how):
    payer, payee = two_holders
    broken = Explode(caller="test", key=ids.new(), customers=(payer.customer_id,), pocket_id=payer.pocket_id, how=how)
    good = [payment(payer, payee, 100_00) for _ in range(6)]
    answers = await asyncio.gather(
        *(bank.engine.submit(command) for command in (*good[:3], broken, *good[3:])), return_exceptions=True
    )
    assert isinstance(answers.pop(3), InvariantError)
    told = [answer.outcome["status"] for answer in answers if isinstance(answer, Answer)]
    assert told == ["COMPLETED"] * len(answers) == ["COMPLETED"] * 6
    assert await bank.pool.fetchval("SELECT count(*) FROM command WHERE kind = 'Explode'") == 0
    await expect_clean(bank)
    # The key is free: after the bug is gone the command may come again.
    monkeypatch.setattr(Explode, "rule", lambda books, cmd, ctx: {"mended": True})
    assert (await bank.engine.submit(broken)).outcome == {"mended": True}


# -- several engines ------------------------------------------------------------------------


# -- stopping ---------------------------------------------------------------------------------


async def test_stopping_the_engine_under_load_answers_every_command(bank, two_holders):
    payer, _ = two_holders
    command = [payer.receipt(100) for _ in range(50)]
    waiting = [asyncio.ensure_future(bank.engine.submit(each)) for each in command]
    await asyncio.sleep(0.005)
    await bank.engine.stop()
    done, pending = await asyncio.wait(waiting, timeout=5)
    assert not pending
    acknowledged = sum(1 for each in done if each.exception() is None)
    kept = await bank.pool.fetchval("SELECT count(*) FROM command WHERE caller = 'test' AND kind = 'ReceiveMoney'")
    assert kept >= acknowledged + 1
    await expect_clean(bank)


# -- lanes ----------------------------------------------------------------------------


async def let_tasks_run():
    for _ in range(5):
        await asyncio.sleep(0)


@pytest.mark.parametrize(("min_batch", "running", "final"), [(1, [1, 1], [1, 1, 3]), (3, [1, 3], [1, 3, 1])])
async def test_an_extra_engine_lane_waits_for_a_minimum_batch(bank, monkeypatch, min_batch, running, final):
    engine = engine_beside(bank, lanes=2, min_batch=min_batch)
    taken, end = [], asyncio.Event()

    async def run(batch):
        taken.append(len(batch))
        await end.wait()

    monkeypatch.setattr(engine, "_run", run)
    await engine.start()
    holders = [Holder(bank, ids.new(), ids.new(), portal_id=ids.new()) for _ in range(10)]
    waiting = []
    for payer, payee in zip(holders[::2], holders[1::2], strict=True):
        sent = engine.submit(payment(payer, payee, 1_00))
        waiting.append(asyncio.create_task(sent))
        await let_tasks_run()
    assert taken == running
    end.set()
    await let_tasks_run()
    assert taken == final
    for each in waiting:
        each.cancel()
    await engine.stop()


async def test_commands_of_a_customer_are_executed_in_order_across_lanes(bank, monkeypatch):
    engine = engine_beside(bank, lanes=2)
    taken, end = [], asyncio.Event()

    async def run(batch):
        taken.append([job.command.amount for job in batch])
        await end.wait()

    monkeypatch.setattr(engine, "_run", run)
    await engine.start()
    a, b, c, d = (Holder(bank, ids.new(), ids.new(), portal_id=ids.new()) for _ in range(4))
    pairs = ((a, b), (b, c), (c, d))
    waiting = []
    for cents, (payer, payee) in enumerate(pairs, 1):
        waiting.append(asyncio.create_task(engine.submit(payment(payer, payee, cents))))
        await let_tasks_run()
    assert taken == [[1]]
    end.set()
    await let_tasks_run()
    assert taken == [[1], [2, 3]]
    for each in waiting:
        each.cancel()
    await engine.stop()


class Shifts:
    """An engine whose batches end when they are told to, in any order."""

    def __init__(self, engine, monkeypatch, draw):
        self.engine, self.draw = engine, draw
        self.batches, self.held, self.sent, self.waiting = [], [], 0, []
        monkeypatch.setattr(engine, "_run", self.run)

    async def run(self, batch):
        customers = {c for job in batch for c in job.customers}
        assert all(customers.isdisjoint(other) for other, _, _ in self.held)
        others = sum(size for _, size, _ in self.held)
        assert len(batch) >= (others // 2 if self.engine._by_shard else 1)
        own = (customers, len(batch), asyncio.Event())
        self.held.append(own)
        self.batches.append([job.command.amount for job in batch])
        await own[2].wait()
        self.held.remove(own)

    async def send(self, pairs):
        for payer, payee in pairs:
            self.sent += 1
            self.waiting.append(asyncio.create_task(self.engine.submit(payment(payer, payee, self.sent))))
        await let_tasks_run()

    async def end_one(self):
        self.draw.choice(self.held)[2].set()
        await let_tasks_run()

    async def play(self):
        """Send at random while batches end, until all have; return the customers of each command."""
        people = [Holder(None, ids.new(), ids.new(), portal_id=ids.new()) for _ in range(self.draw.choice([3, 12, 60]))]
        customers = []
        for _ in range(12):
            pairs = [self.draw.sample(people, 2) for _ in range(self.draw.randrange(20))]
            customers += [{each.customer_id for each in pair} for pair in pairs]
            await self.send(pairs)
            for _ in range(min(self.draw.randrange(3), len(self.held))):
                await self.end_one()
        while self.held:
            await self.end_one()
        return customers


@pytest.mark.parametrize("by_shard", [False, True])
async def test_lanes_take_every_command_once_and_those_of_a_customer_in_order(bank, monkeypatch, by_shard):
    async def is_distributed(_):
        return by_shard

    monkeypatch.setattr("billfold.ledger.engine.engine.is_distributed", is_distributed)
    for seed in range(20):
        engine = engine_beside(bank, lanes=3, batch_limit=8)
        shifts = Shifts(engine, monkeypatch, Random(seed))
        await engine.start()
        customers = await shifts.play()
        # Nothing waits when all batches have ended, and commands of a customer have kept their order.
        taken = [nth for batch in shifts.batches for nth in batch]
        assert sorted(taken) == list(range(1, len(customers) + 1))
        assert max(map(len, shifts.batches)) <= (16 if by_shard else 8)
        for position, later in enumerate(taken):
            overtaken = [nth for nth in taken[position:] if nth < later]
            assert not any(customers[nth - 1] & customers[later - 1] for nth in overtaken)
        for each in shifts.waiting:
            each.cancel()
        await engine.stop()
