"""Who asks while one batch is away goes with the next; an error is everybody's of that batch."""

import asyncio

import pytest

from billfold.platform.database.batcher import Batcher


class Post:
    """A carrier that leaves when told to, and remembers what it carried."""

    def __init__(self):
        self.carried = []
        self.may_leave = asyncio.Event()

    async def run(self, items):
        self.carried.append(list(items))
        await self.may_leave.wait()
        if "bad" in items:
            raise ValueError(items)
        return [item.upper() for item in items]


async def test_an_item_submitted_during_a_batch_joins_the_next():
    post = Post()
    gatherer = Batcher(post.run)
    first = gatherer.ask("a")
    await asyncio.sleep(0)
    later = [gatherer.ask(item) for item in "bcd"]
    post.may_leave.set()
    assert await asyncio.gather(first, *later) == ["A", "B", "C", "D"]
    assert post.carried == [["a"], ["b", "c", "d"]]


async def test_a_batch_carries_no_more_than_its_limit_in_the_order_of_asking():
    post = Post()
    post.may_leave.set()
    gatherer = Batcher(post.run, limit=2)
    assert await asyncio.gather(*map(gatherer.ask, "abcde")) == list("ABCDE")
    assert post.carried == [["a", "b"], ["c", "d"], ["e"]]


async def test_an_error_is_that_of_its_batch_and_of_no_other():
    post = Post()
    post.may_leave.set()
    gatherer = Batcher(post.run, limit=2)
    asked = [gatherer.ask(item) for item in ("a", "bad", "c")]
    answers = await asyncio.gather(*asked, return_exceptions=True)
    assert [type(answer) for answer in answers] == [ValueError, ValueError, str]
    assert await gatherer.ask("d") == "D"


async def test_a_cancelled_caller_blocks_no_other():
    post = Post()
    gatherer = Batcher(post.run)
    impatient, patient = gatherer.ask("a"), gatherer.ask("b")
    impatient.cancel()
    post.may_leave.set()
    assert await patient == "B"
    with pytest.raises(asyncio.CancelledError):
        await impatient


async def test_settling_waits_for_what_is_under_way():
    post = Post()
    gatherer = Batcher(post.run)
    asked = gatherer.ask("a")
    asyncio.get_running_loop().call_later(0.01, post.may_leave.set)
    await gatherer.settle()
    assert asked.done()
