import gc
import weakref

from billfold.platform.database.shortage import patiently


class Refusal(Exception):
    pass


async def refuse():
    raise Refusal


async def test_a_refusal_is_gone_once_it_was_answered_without_the_collector():
    gc.disable()
    try:
        try:
            await patiently(refuse)
        except Refusal as refusal:
            kept = weakref.ref(refusal)
        assert kept() is None
    finally:
        gc.enable()
