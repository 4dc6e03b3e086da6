import asyncio
from datetime import UTC, datetime, timedelta, timezone

import asyncpg
import pytest
from tests.support.cases import in_one_bank

from billfold.platform.database import pool as database_pool
from billfold.platform.database.pool import Batcher


@pytest.fixture
async def pool(empty_database_dsn):
    async with await database_pool.create_pool(empty_database_dsn, max_size=2) as opened:
        yield opened


@in_one_bank(
    "instant",
    [
        datetime(2025, 6, 2, 13, 0, 0, 123456, UTC),
        datetime(1999, 12, 31, 23, 59, 59, 999999, UTC),
        datetime(1, 1, 1, tzinfo=UTC),
        datetime(9999, 12, 31, 23, 59, 59, 999999, UTC),
        datetime(2025, 7, 1, 9, 30, tzinfo=timezone(timedelta(hours=-4))),
    ],
)
async def test_timestamps_round_trip_through_the_database(pool, instant):
    assert await pool.fetchval("SELECT $1::timestamptz", instant) == instant
    text = "SELECT to_char($1::timestamptz, 'YYYY-MM-DD HH24:MI:SS.US')"
    said = await pool.fetchval(text, instant)
    assert datetime.fromisoformat(f"{said}+00:00") == instant
    both = await pool.fetchval("SELECT $1::timestamptz[] || $2::timestamptz", [instant], None)
    assert both == [instant, None]


async def test_database_sessions_have_the_rights_of_the_given_role(database_dsn):
    async with await database_pool.create_pool(database_dsn, max_size=2, role=database_pool.APP_ROLE) as pool:
        assert await pool.fetchval("SELECT current_user") == database_pool.APP_ROLE
        assert not await pool.fetchval("SELECT has_table_privilege('audit_entry', 'UPDATE')")
        assert await pool.fetchval("SELECT has_table_privilege('pocket', 'UPDATE')")


async def test_a_session_whose_commits_do_not_wait_for_the_disk_is_not_used_by_others_after_an_error(pool):
    pinned = database_pool.PinnedConnection(pool, by_pooler=False)
    assert [tuple(row) for row in await pinned.fetch("SHOW enable_seqscan")] == [("off",)]  # set together with that
    with pytest.raises(asyncpg.DivisionByZeroError):
        await pinned.fetch("SELECT 1 / 0")
    async with pool.acquire() as one, pool.acquire() as other:
        assert [await each.fetchval("SHOW enable_seqscan") for each in (one, other)] == ["on", "on"]


class Post:
    """A transport that stops on request and records its messages."""

    def __init__(self):
        self.carried = []
        self.may_leave = asyncio.Event()

    async def run(self, items):
        self.carried.append(list(items))
        await self.may_leave.wait()
        if "bad" in items:
            raise ValueError(items)
        return [item.upper() for item in items]


async def test_an_item_submitted_during_a_batch_joins_the_next_batch():
    post = Post()
    gatherer = Batcher(post.run)
    first = gatherer.ask("a")
    await asyncio.sleep(0)
    later = [gatherer.ask(item) for item in "bcd"]
    post.may_leave.set()
    assert await asyncio.gather(first, *later) == ["A", "B", "C", "D"]
    assert post.carried == [["a"], ["b", "c", "d"]]


async def test_a_batch_is_limited_in_size_and_keeps_submission_order():
    post = Post()
    post.may_leave.set()
    gatherer = Batcher(post.run, limit=2)
    assert await asyncio.gather(*map(gatherer.ask, "abcde")) == list("ABCDE")
    assert post.carried == [["a", "b"], ["c", "d"], ["e"]]


async def test_a_batch_error_does_not_affect_other_batches():
    post = Post()
    post.may_leave.set()
    gatherer = Batcher(post.run, limit=2)
    asked = [gatherer.ask(item) for item in ("a", "bad", "c")]
    answers = await asyncio.gather(*asked, return_exceptions=True)
    assert [type(answer) for answer in answers] == [ValueError, ValueError, str]
    assert await gatherer.ask("d") == "D"


async def test_a_cancelled_caller_does_not_block_its_batch():
    post = Post()
    gatherer = Batcher(post.run)
    impatient, patient = gatherer.ask("a"), gatherer.ask("b")
    impatient.cancel()
    post.may_leave.set()
    assert await patient == "B"
    with pytest.raises(asyncio.CancelledError):
        await impatient


async def test_settling_waits_for_the_running_batch():
    post = Post()
    gatherer = Batcher(post.run)
    asked = gatherer.ask("a")
    asyncio.get_running_loop().call_later(0.01, post.may_leave.set)
    await gatherer.settle()
    assert asked.done()
