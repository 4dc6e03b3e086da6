"""The engine: each command exactly once, refusals without a trace, failures of one command isolated."""

import asyncio
from datetime import date
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
    """Count the rows of every table with rows of customers, but for the heads that move on."""
    tables = {row.table for row in Row.__subclasses__() if "customer_id" in row.__struct_fields__ and is_stored(row)}
    return {table: await bank.pool.fetchval(f"SELECT count(*) FROM {table}") for table in tables}


@pytest.fixture
async def two(new_holder):
    """Two holders with money."""
    payer, payee = await new_holder(), await new_holder(weeks=26)
    await payer.deposit(50_000_00)
    await payee.deposit(10_000_00)
    return payer, payee


# -- once -----------------------------------------------------------------------------


async def test_the_same_answer_is_given_when_a_command_comes_again(bank, two: Pair):
    command = payment(*two, 1_000_00)
    first = await bank.engine.submit(command)
    before = await counts(bank)
    again = await bank.engine.submit(command)
    assert (again.outcome, again.replayed, first.replayed) == (first.outcome, True, False)
    assert await counts(bank) == before


async def test_both_get_one_answer_when_a_command_comes_twice_at_once(bank, two: Pair):
    command = payment(*two, 1_000_00)
    answers = await asyncio.gather(*(bank.engine.submit(command) for _ in range(5)))
    assert len({msgspec.json.encode(answer.outcome) for answer in answers}) == 1
    assert await bank.pool.fetchval("SELECT count(*) FROM transfer") == 1


async def test_the_others_of_a_batch_are_carried_out_once_when_a_key_in_it_comes_again(bank, two: Pair):
    old, new = payment(*two, 1_000_00), [payment(*two, cents) for cents in (2_000_00, 3_000_00)]
    first = await bank.engine.submit(old)
    before = await counts(bank)
    answers = await bank.engine.submit_all([new[0], old, new[1]])
    assert [answer.replayed for answer in answers] == [False, True, False]
    assert answers[1].outcome == first.outcome
    after = await counts(bank)
    assert {table: after[table] - before[table] for table in ("command", "transfer")} == {"command": 2, "transfer": 2}
    await expect_clean(bank)


async def test_a_key_is_refused_when_it_belongs_to_another_request(bank, two: Pair):
    command = payment(*two, 1_000_00)
    other = msgspec.structs.replace(command, amount=2_000_00, request_hash=b"another")
    together = await bank.engine.submit_all([command, other])
    assert together[0].outcome["status"] == "COMPLETED"
    assert isinstance(together[1], Refused)
    with pytest.raises(Refused) as refused:
        await bank.engine.submit(other)
    assert refused.value.code == "idempotency-key-reused"
    await expect_clean(bank)


async def test_a_refusal_leaves_its_command_and_nothing_else(bank, two):
    payer, payee = two
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


async def test_an_unknown_customer_is_not_found(bank, two):
    payer, payee = two
    stranger = msgspec.structs.replace(payment(payer, payee, 100), customers=(ids.new(),))
    before = await counts(bank)
    with pytest.raises(NotFound):
        await bank.engine.submit(stranger)
    assert await counts(bank) == before


@pytest.mark.parametrize("refused", [True, False])
async def test_due_work_is_kept_when_the_command_after_it_finds_cold_books(bank, two, refused):
    payer, payee = two
    async with bank.pool.acquire() as conn:
        await write_clock(conn, ClockState(et_instant(date(2025, 7, 8), 10), wall_now(), frozen=True))
    bank.engine.forget_all()
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


async def test_a_pocket_is_not_overdrawn_when_two_payments_of_one_batch_would(bank, two: Pair):
    commands = [payment(*two, 30_000_00) for _ in range(2)]
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
    """A command with a bug: it raises, or it plans what the database must refuse."""

    rule = explode

    pocket_id: UUID
    how: str


@pytest.mark.parametrize("how", ["raise", "overdraw"])
async def test_only_the_broken_command_fails_when_a_batch_holds_one(bank, two, monkeypatch, how):
    payer, payee = two
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


@pytest.fixture
async def rival(bank):
    """Another process on the same database, with a cache of its own."""
    engine = engine_beside(bank)
    await engine.start()
    yield engine
    await engine.stop()


async def test_no_money_is_spent_twice_when_two_engines_fight_for_a_pocket(bank, rival, two):
    payer, payee = two
    wanted = [payment(payer, payee, 3_333_00) for _ in range(30)]
    answers = await asyncio.gather(*(engine.submit(each) for each in wanted for engine in (bank.engine, rival)))
    paid = {a.outcome["transfer_id"] for a in answers if a.outcome["status"] == "COMPLETED"}
    assert len(paid) == 14  # the spread leaves too little of 50,000.00 for a fifteenth
    for one, other in zip(answers[::2], answers[1::2], strict=True):
        assert one.outcome == other.outcome
        assert one.replayed != other.replayed
    await expect_clean(bank)


async def test_nothing_is_lost_when_engines_pay_to_and_fro(bank, rival, two):
    one, other = two
    pairs = [(one, other), (other, one)]
    await asyncio.gather(
        *((bank.engine, rival)[n % 2].submit(payment(*pairs[(n // 3) % 2], 100_00 + n)) for n in range(120))
    )
    assert await bank.pool.fetchval("SELECT count(*) FROM command WHERE kind = 'TransferOnUs'") == 120
    on_us = "SELECT customer_id, account_no FROM account WHERE kind = 'on_us'"
    credited, debited = f"(customer_id, credit) IN ({on_us})", f"(customer_id, debit) IN ({on_us})"
    assert await bank.pool.fetchval(f"SELECT sum(amount) FROM posting WHERE {credited}") == await bank.pool.fetchval(
        f"SELECT sum(amount) FROM posting WHERE {debited}"
    )
    await expect_clean(bank)


# -- stopping ---------------------------------------------------------------------------------


async def test_every_command_is_answered_when_the_engine_stops_under_load(bank, two):
    payer, _ = two
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
async def test_an_extra_lane_waits_for_a_minimum_batch(bank, monkeypatch, min_batch, running, final):
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


async def test_no_command_overtakes_an_earlier_one_of_its_customer(bank, monkeypatch):
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
