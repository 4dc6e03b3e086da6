"""Background work that continues after the response."""

import asyncio

from billfold.ledger.bank import BackgroundTasks


async def test_closing_background_tasks_waits_for_all_despite_a_failed_one():
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
