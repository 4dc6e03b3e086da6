import asyncio
import gc
import weakref
from contextlib import contextmanager

from billfold.platform import garbage_collection
from billfold.platform.garbage_collection import FEW_OBJECTS, FEW_UNDER_WAY, collecting_at_rest


class Cycle:
    def __init__(self):
        self.itself = self


@contextmanager
def no_automatic_look():
    gc.disable()
    try:
        yield
    finally:
        gc.unfreeze()
        gc.enable()


async def some_looks():
    for _ in range(3):
        await asyncio.sleep(0)


async def test_garbage_is_looked_for_when_little_is_under_way(monkeypatch):
    monkeypatch.setattr(garbage_collection, "LOOK_SECONDS", 0)
    monkeypatch.setattr(garbage_collection, "MANY_OBJECTS", 20 * FEW_OBJECTS)
    under_way = FEW_UNDER_WAY + 1
    with no_automatic_look():
        gc.freeze()
        lost = weakref.WeakSet(Cycle() for _ in range(FEW_OBJECTS))
        async with collecting_at_rest(lambda: under_way):
            await some_looks()
            assert len(lost) == FEW_OBJECTS
            under_way -= 1
            await some_looks()
            assert not lost


async def test_so_much_is_put_aside_without_a_look_and_no_more(monkeypatch):
    monkeypatch.setattr(garbage_collection, "LOOK_SECONDS", 0)
    monkeypatch.setattr(garbage_collection, "MANY_OBJECTS", 0)
    monkeypatch.setattr(garbage_collection, "UNSEEN_OBJECTS_MAX", 20 * FEW_OBJECTS)
    unseen: list[weakref.WeakSet[Cycle]] = []
    with no_automatic_look():
        gc.freeze()
        async with collecting_at_rest(lambda: 0):
            while len(unseen) < 20:
                unseen.append(weakref.WeakSet(Cycle() for _ in range(FEW_OBJECTS)))
                await some_looks()
                if not unseen[-1]:
                    break
    assert 1 < len(unseen) < 20
    assert all(len(each) == FEW_OBJECTS for each in unseen[:-1])
