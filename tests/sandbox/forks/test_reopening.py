"""The server between two banks: current requests end first, later ones wait or time out."""

import asyncio
import fcntl
import json
from contextlib import asynccontextmanager
from typing import Any

from billfold.sandbox.forks import lease
from billfold.sandbox.forks.lease import SANDBOX_LOCK, ReopeningApp, bank_lease, pause_bank

SCOPE = {"type": "http", "method": "GET", "path": "/x/", "query_string": b"", "headers": [(b"host", b"a.example")]}


class Opened:
    """An app that answers with the number of the bank, once it may."""

    def __init__(self, number):
        self.number = number
        self.may_answer = asyncio.Event()
        self.streams_ended = False

    async def __call__(self, scope, receive, send):
        await self.may_answer.wait()
        await send(self.number)

    @asynccontextmanager
    async def lifespan(self):
        yield

    def end_streams(self):
        self.streams_ended = True


async def test_a_reopened_bank_finishes_running_requests_and_serves_later_ones(tmp_path, monkeypatch):
    opened: list[Any] = []
    answers: list[Any] = []
    app: Any = ReopeningApp(lambda: opening(tmp_path, opened), tmp_path)

    async def send(message):
        answers.append(message)

    async with app.lifespan():
        early = asyncio.create_task(app(SCOPE, None, send))
        pause = asyncio.create_task(hold(tmp_path, replaced := asyncio.Event(), go_on := asyncio.Event()))
        while not opened[0].streams_ended:
            await asyncio.sleep(0.01)
        late = asyncio.create_task(app(SCOPE, None, send))
        await asyncio.sleep(0.1)
        assert not replaced.is_set()  # the request under way is waited for
        opened[0].may_answer.set()
        await asyncio.gather(early, replaced.wait())
        monkeypatch.setattr(lease, "WAIT_SECONDS", 0.05)
        await app(SCOPE, None, send)
        go_on.set()
        while len(opened) == 1:
            await asyncio.sleep(0.01)
        opened[1].may_answer.set()
        await asyncio.gather(late, pause)
    first, start, body, last = answers
    assert (first, last) == (0, 1)
    assert (start["status"], dict(start["headers"])[b"retry-after"]) == (503, b"1")
    assert json.loads(body["body"])["code"] == "unavailable"


@asynccontextmanager
async def opening(folder, opened):
    async with bank_lease(folder):
        opened.append(Opened(len(opened)))
        yield opened[-1], opened[-1]


async def hold(folder, replaced, go_on):
    with (folder / SANDBOX_LOCK).open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # as the sandbox that makes copies
        async with pause_bank(folder, is_whole=lambda: True):
            replaced.set()
            await go_on.wait()
