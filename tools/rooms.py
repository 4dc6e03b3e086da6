#!/usr/bin/env python
"""Count the files of the bank that a request enters, and how many of them before the first line of its handler.

Each journey is walked once before it is counted: what is loaded or looked up once does not count.

usage: .venv/bin/python tools/rooms.py [-v to name the files]
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
BANK = str(ROOT / "src" / "billfold")
CLIENT = f"{BANK}/client/"


Step = Callable[[], Awaitable[object]]


async def entered(step: Step, handler: str, prepare: Step) -> tuple[list[str], list[str]]:
    """Return the files that a step enters, in that order: those before its handler, and all.

    Of several times the one with the fewest counts, when nothing else happened.
    """
    await prepare()
    await step()
    await asyncio.sleep(1.5)  # what is written behind earlier requests is written by now
    found = []
    for _ in range(4):
        await prepare()
        found.append(await _enter(step, handler))
    return min(found, key=lambda each: len(each[0]) + len(each[1]))


async def _enter(step: Step, handler: str) -> tuple[list[str], list[str]]:
    found: dict[str, None] = {}
    before: list[str] = []

    def note(frame: FrameType, event: str, _: object) -> None:
        path, name = frame.f_code.co_filename, frame.f_code.co_name
        # The client signs its request before it calls the application.
        if event != "call" or not (found or name == "__call__"):
            return
        if path.startswith(BANK) and path.endswith(".py") and not path.startswith(CLIENT):
            if name == handler and not before:
                before.extend(found)
            found[path.removeprefix(f"{BANK}/")] = None

    sys.setprofile(note)
    try:
        await step()
    finally:
        sys.setprofile(None)
    return before, [*found]


async def test_rooms(customer_world: Any, customer_desk: Any, console: Any) -> None:
    """Print the table."""
    origin = await customer_world.funded(1_000_00)
    target = await customer_world.pocket(origin.customer)
    opened = await customer_world.funded(1_000_00, customer_desk.team.customer)
    other = await customer_desk.pocket()
    browser = await console(customer_desk)
    path = f"{browser.home}/move-money"
    chosen = {"origin": opened.id, "to": f"pocket:{other.id}", "amount": "1"}

    async def ready() -> None:
        pass

    async def show_form() -> None:
        await browser.go(f"{path}?origin={opened.id}")

    async def preview() -> None:
        await browser.send(path, step="preview", **chosen)

    async def show_preview() -> None:
        await show_form()
        await preview()

    async def request() -> None:
        await browser.send(path, step="request")

    for name, step, handler, prepare in (
        ("read a Pocket", lambda: customer_world.get(origin.path), "get_pocket", ready),
        ("on-us transfer", lambda: customer_world.transfer(origin, target, 1_00), "create_on_us_transfer", ready),
        ("preview in the console", preview, "move_money", show_form),
        ("request in the console", request, "move_money", show_preview),
    ):
        before, found = await entered(step, handler, prepare)
        print(f"{name:24}{len(found):4} files{len(before):4} before the handler")
        if "-v" in sys.argv:
            print(*(f"    {'' if each in before else '      '}{each}" for each in found), sep="\n")


if __name__ == "__main__":
    sys.exit(pytest.main(["-q", "-s", "-p", "tests.conftest", __file__]))
