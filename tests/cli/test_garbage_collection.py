import gc
import weakref

import pytest

from billfold.cli.python_process import THRESHOLD, tune_garbage_collector


class Cycle:
    def __init__(self):
        self.itself = self


@pytest.fixture
def tuned_collector():
    before = gc.get_threshold()
    tune_garbage_collector()
    yield
    gc.unfreeze()
    gc.set_threshold(*before)


def test_leaked_cycles_are_collected_only_over_the_threshold(tuned_collector):
    lost = weakref.WeakSet(Cycle() for _ in range(100))
    assert len(lost) == 100
    kept: list[list[int]] = [[] for _ in range(THRESHOLD)]
    assert (len(lost), len(kept)) == (0, THRESHOLD)
