"""Background work that continues after the response."""

import asyncio
import gc

from structlog.testing import capture_logs

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


async def test_a_failed_background_task_is_logged_in_one_line_and_not_left_to_the_loop():
    unseen = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: unseen.append(context))
    tasks = BackgroundTasks()

    async def fail():
        raise ConnectionError("the database is gone\nwith a row")

    with capture_logs() as logs:
        tasks.start(fail())
        for _ in range(3):
            await asyncio.sleep(0)
        await tasks.close()
    gc.collect()
    assert [each["event"] for each in logs] == ["background_task_failed"]
    assert "\n" not in logs[0]["error"]
    assert unseen == []
