import gc
import weakref

import pytest

from billfold.platform.database.shortage import patiently


class Refusal(Exception):
    pass


@pytest.fixture
def no_collector():
    gc.disable()
    yield
    gc.enable()


async def test_an_answered_refusal_is_garbage_collected(no_collector):
    refusals = weakref.WeakSet[Refusal]()

    async def refuse():
        refusal = Refusal()
        refusals.add(refusal)
        try:
            raise refusal
        finally:
            del refusal

    try:
        await patiently(refuse)
    except Refusal:
        assert len(refusals) == 1
    assert not refusals
