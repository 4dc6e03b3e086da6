"""Work that goes on after an answer."""

import asyncio

from billfold.ledger.bank import BackgroundTasks


async def test_all_have_ended_when_their_owner_is_closed_though_one_failed():
    tasks, ended = BackgroundTasks(), []

    async def work(name):
        await asyncio.sleep(0)
        if name == "bad":
            raise ValueError
        ended.append(name)

    for name in ("one", "bad", "two"):
        tasks.start(work(name))
    await tasks.close()
    assert ended == ["one", "two"]
