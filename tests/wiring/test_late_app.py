"""The pages are loaded while the APIs serve, once, and their first requests wait for them."""

import asyncio
import threading
from contextlib import asynccontextmanager
from typing import Any

import pytest

from billfold.wiring.server import LateApp


class App:
    def __init__(self):
        self.served = []
        self.lives = []

    async def __call__(self, scope, receive, send):
        self.served.append(scope)

    @asynccontextmanager
    async def lifespan(self):
        yield
        self.lives.append("closed")


async def test_requests_wait_for_an_application_that_is_loaded_once():
    may_load, loads, app = threading.Event(), [], App()

    def load():
        may_load.wait(5)
        loads.append(threading.current_thread())
        return app

    late: Any = LateApp(load)
    async with late.lifespan():
        first, given_up, third = (asyncio.create_task(late(n, None, None)) for n in range(3))
        await asyncio.sleep(0.01)
        given_up.cancel()
        assert not app.served
        may_load.set()
        await asyncio.gather(first, third)
        await late(3, None, None)
        assert app.served == [0, 2, 3]
        assert app.lives == []
    assert app.lives == ["closed"]
    assert len(loads) == 1
    assert loads[0] is not threading.main_thread()


async def test_requests_fail_when_the_application_cannot_be_loaded():
    def load():
        raise ZeroDivisionError

    late: Any = LateApp(load)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            await late(0, None, None)
